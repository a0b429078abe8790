//! Layer 50: which shard a connection comes to.

use crate::support::peer::{on_cpu, two_cpus};
use crate::support::server::Stats;
use crate::support::{Client, Server, Site, skip};

/// Serves `site` by one shard on each of two CPUs.
fn server(site: &Site, steer: &str, [first, second]: [usize; 2]) -> Server {
    let cpus = format!("{first},{second}");
    Server::start(site.serve().cpus(&cpus).arg("--steer").arg(steer))
}

/// Has `count` clients on `cpu` connect and fetch, and stops the server.
fn fetched_from(cpu: usize, count: usize, server: Server) -> Stats {
    on_cpu(cpu, || {
        let mut clients: Vec<_> = (0..count).map(|_| Client::connect(server.address())).collect();
        for client in &mut clients {
            assert_eq!(client.get("/file").body, b"content");
        }
        // Again, from wherever each has come to.
        for client in &mut clients {
            assert_eq!(client.get("/file").body, b"content");
        }
    });
    let stats = server.stop();
    assert_eq!(stats.total("accepted") as usize, count);
    assert_eq!(stats.total("requests") as usize, 2 * count);
    stats
}

#[test]
fn by_hash_a_client_on_one_cpu_is_spread_over_both_shards() {
    let Some(cpus) = two_cpus() else { return skip("needs two CPUs") };
    let site = Site::with("file", "content");
    let stats = fetched_from(cpus[0], 64, server(&site, "hash", cpus));
    let accepted = stats.of_shards("accepted");
    // Fewer is a chance of one in a thousand million.
    assert!(accepted.iter().all(|&count| count >= 8), "{accepted:?}");
}

#[test]
fn on_loopback_steering_is_by_hash_unless_told_otherwise() {
    let Some(cpus) = two_cpus() else { return skip("needs two CPUs") };
    let site = Site::with("file", "content");
    let stats = fetched_from(cpus[0], 64, server(&site, "auto", cpus));
    let accepted = stats.of_shards("accepted");
    assert!(accepted.iter().all(|&count| count >= 8), "{accepted:?}");
}

#[test]
fn by_cpu_each_shard_gets_the_connections_of_its_cpu() {
    let Some(cpus) = two_cpus() else { return skip("needs two CPUs") };
    let site = Site::with("file", "content");
    for (shard, cpu) in cpus.into_iter().enumerate() {
        // Too few to be handed on.
        let stats = fetched_from(cpu, 16, server(&site, "cpu", cpus));
        assert_eq!(stats.of_shards("accepted")[shard], 16);
        assert_eq!((stats.total("wrong_cpu"), stats.total("handed_off")), (0, 0));
    }
    // The order of the shards, not of the CPUs, is what counts.
    let [first, second] = cpus;
    let stats = fetched_from(first, 16, server(&site, "cpu", [second, first]));
    assert_eq!(stats.of_shards("accepted"), [0, 16]);
    assert_eq!(stats.total("wrong_cpu"), 0);
}

#[test]
fn a_shard_with_too_many_connections_hands_new_ones_to_the_other() {
    let Some(cpus) = two_cpus() else { return skip("needs two CPUs") };
    let site = Site::with("file", "content");
    let stats = fetched_from(cpus[0], 200, server(&site, "cpu", cpus));
    assert_eq!(stats.of_shards("accepted"), [200, 0]);
    let handed_off = stats.total("handed_off");
    assert!(handed_off > 0);
    assert_eq!(stats.of_shards("handed_off"), [handed_off, 0]);
    assert_eq!(stats.of_shards("received_hand_off"), [0, handed_off]);
    let requests = stats.of_shards("requests");
    assert_eq!(requests[1], 2 * handed_off);
    assert!(requests[0] < 3 * requests[1], "{requests:?}");
}
