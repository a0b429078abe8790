//! Layer 40: RFC 9110, what requests and responses mean. See
//! [`conformance_40`](crate::conformance_40).

mod conditions;
mod content;
mod expect;
mod if_range;
mod methods;
mod negotiation;
mod ranges;
mod upgrade;
