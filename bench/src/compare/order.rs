//! The order of measurements: randomised blocks, interleaved.
//!
//! A block is one cell with one client in one round: the servers that take part, next to each other
//! in time and in an order drawn anew, so that what the machine does to one it does to the others.
//! The blocks of a round are shuffled, so that no cell always follows the same other one.

use super::cell::Cell;
use super::comparison::Place;
use super::options::Client;
use super::peer::Server;

/// Neighbours in time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    /// Counted from 0.
    pub(super) round: u32,
    /// The load.
    pub(super) cell: Cell,
    /// Who makes it.
    pub(super) client: Client,
    /// Who bears it, one after the other; never empty.
    pub(super) servers: Vec<Server>,
}

impl Block {
    /// The place of one of its measurements.
    pub(super) fn place(&self, server: Server) -> Place {
        Place {
            round: self.round,
            cell: self.cell.name.to_owned(),
            client: self.client.name().to_owned(),
            server: server.name().to_owned(),
        }
    }
}

/// All blocks of a comparison. The same for the same seed, whatever has been measured already.
pub(super) fn blocks(
    seed: u64,
    rounds: u32,
    cells: &[Cell],
    clients: &[Client],
    servers: &[Server],
) -> Vec<Block> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut all = Vec::new();
    for round in 0..rounds {
        let mut loads: Vec<(Cell, Client)> = Vec::new();
        for &cell in cells {
            loads.extend(clients.iter().filter(|c| c.can_make(cell)).map(|&client| (cell, client)));
        }
        random.shuffle(&mut loads);
        for (cell, client) in loads {
            let mut servers: Vec<_> =
                servers.iter().copied().filter(|s| s.objection(cell).is_none()).collect();
            random.shuffle(&mut servers);
            if !servers.is_empty() {
                all.push(Block { round, cell, client, servers });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::cell::CELLS;

    #[test]
    fn a_round_has_each_combination_once_and_servers_stay_together() {
        let clients = [Client::Run, Client::Wrk];
        let all = blocks(7, 3, &CELLS, &clients, &Server::ALL);
        for round in all.chunk_by(|a, b| a.round == b.round) {
            for cell in CELLS {
                for client in clients {
                    let mut here = round.iter().filter(|b| (b.cell, b.client) == (cell, client));
                    let block = here.next();
                    assert_eq!(block.is_some(), client.can_make(cell), "{}", cell.name);
                    assert!(here.next().is_none());
                    let Some(block) = block else { continue };
                    for server in Server::ALL {
                        let times = block.servers.iter().filter(|s| **s == server).count();
                        let expected = usize::from(server.objection(cell).is_none());
                        assert_eq!(times, expected, "{} {}", cell.name, server.name());
                    }
                }
            }
        }
        assert_eq!(all.chunk_by(|a, b| a.round == b.round).count(), 3);
    }

    #[test]
    fn the_order_is_the_seeds_and_differs_from_round_to_round() {
        let of = |seed| blocks(seed, 2, &CELLS, &[Client::Run], &Server::ALL);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let names = |round| {
            let all = of(1);
            all.iter().filter(|b| b.round == round).map(|b| b.cell.name).collect::<Vec<_>>()
        };
        assert_ne!(names(0), names(1));
    }
}
