//! The sysctl and NIC bundle: not built yet.
