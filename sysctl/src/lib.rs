//! The sysctl and NIC bundle. So far there is what every other part of it rests on: the defaults of
//! the kernel's settings, with the source of each.

pub mod defaults;
