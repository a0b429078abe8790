#![doc = "What onering does with each rule of HTTP/1.1, and the test that shows it."]
#![doc = ""]
#![doc = include_str!("conformance.md")]
