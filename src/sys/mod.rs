//! System calls other than io_uring, behind safe wrappers.
