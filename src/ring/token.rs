//! Names of things in flight.

/// The caller's name for whatever an operation is done for: a slot of its own table and the
/// generation of that slot's tenant. It comes back with every completion, so that one meant for
/// a former tenant can be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// Index in the caller's table.
    pub slot: u32,
    /// Which tenant of the slot is meant.
    pub generation: u32,
}

/// What a completion completes; the top byte of `user_data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Operation {
    Accept = 1,
    Recv,
    Send,
    SendVectored,
    /// Waiting until a send can go on; in the slot of that send.
    Room,
    Connect,
    Poll,
    Read,
    Close,
    Cancel,
    WakeSent,
    Woken,
}

impl Operation {
    const ALL: [Operation; 12] = [
        Operation::Accept,
        Operation::Recv,
        Operation::Send,
        Operation::SendVectored,
        Operation::Room,
        Operation::Connect,
        Operation::Poll,
        Operation::Read,
        Operation::Close,
        Operation::Cancel,
        Operation::WakeSent,
        Operation::Woken,
    ];
}

/// Slots of the operation table are named by 24 bits.
pub(super) const SLOTS_MAX: usize = 1 << 24;

/// `user_data` of a submission: operation (8 bits), slot in the operation table (24), generation
/// of that slot (32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UserData {
    pub(super) operation: Operation,
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl UserData {
    /// For operations that need no place in the table.
    pub(super) const fn anonymous(operation: Operation) -> UserData {
        UserData { operation, slot: 0, generation: 0 }
    }

    /// Whether both name one entry of the operation table.
    pub(super) fn is_of(self, other: UserData) -> bool {
        (self.slot, self.generation) == (other.slot, other.generation)
    }

    pub(super) const fn pack(self) -> u64 {
        (self.operation as u64) << 56 | (self.slot as u64) << 32 | self.generation as u64
    }

    /// `None` for bits that no ring of ours sends: another ring may post any message to us.
    pub(super) fn unpack(bits: u64) -> Option<UserData> {
        let operation = *Operation::ALL.get(((bits >> 56) as usize).wrapping_sub(1))?;
        Some(UserData {
            operation,
            slot: (bits >> 32) as u32 & (SLOTS_MAX as u32 - 1),
            generation: bits as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_data_comes_back_as_it_was() {
        for operation in Operation::ALL {
            for (slot, generation) in [(0, 0), (1, u32::MAX), (SLOTS_MAX as u32 - 1, 7)] {
                let name = UserData { operation, slot, generation };
                assert_eq!(UserData::unpack(name.pack()), Some(name));
            }
        }
    }

    #[test]
    fn foreign_bits_name_nothing() {
        assert_eq!(UserData::unpack(0), None);
        assert_eq!(UserData::unpack(u64::MAX), None);
    }
}
