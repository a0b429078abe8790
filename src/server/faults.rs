#![doc = "The faults of other servers, and the tests that none of them is here."]
#![doc = ""]
#![doc = include_str!("faults.md")]
