//! Layer 80: a module for each defect that was found, named by what was seen of it.

mod answers_were_lost_to_a_reset;
