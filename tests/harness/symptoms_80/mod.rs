//! Layer 80: a module for each defect that was found, named by what was seen of it.

mod a_lack_of_memory_kept_a_shard_spinning;
mod a_log_that_could_not_be_written_ended_the_server;
mod a_restart_after_a_kill_found_the_port_taken;
mod answers_that_nobody_read_filled_the_memory;
mod answers_were_lost_to_a_reset;
mod requests_were_lost_after_a_pause;
