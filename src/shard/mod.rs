//! One CPU: event loop, connections, timers, inbox.
