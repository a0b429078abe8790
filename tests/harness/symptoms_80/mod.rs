//! Layer 80: a module for each defect that was found, here or in other servers, named by what was seen
//! of it.

mod a_304_told_caches_the_wrong_thing;
mod a_compressed_file_was_taken_for_something_else;
mod a_download_ended_after_two_gibibytes;
mod a_fifo_stopped_the_server;
mod a_growing_file_sent_more_than_was_promised;
mod a_log_that_could_not_be_written_ended_the_server;
mod a_range_had_a_coding_that_it_was_not_in;
mod a_range_promised_more_than_there_was;
mod a_redirect_led_to_another_host;
mod a_replaced_file_was_a_mix_of_both;
mod a_rewrite_in_the_same_second_was_not_modified;
mod a_rule_was_forgotten_for_an_index;
mod a_weak_tag_joined_two_versions;
mod another_answer_came_within_a_body;
mod answers_that_nobody_read_filled_the_memory;
mod answers_were_lost_to_a_reset;
mod head_was_answered_with_a_body;
mod many_ranges_were_more_than_the_file;
mod requests_were_lost_after_a_pause;
