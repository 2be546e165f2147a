//! Weights from the server: any bytes are refused or a network of the run's sizes, and workers fetch the newest version.

use super::chunks::change;
use super::play::Setting;
use super::server::{Redis, TINY, Vecaz, publish, wait_until};
use std::path::Path;
use vecaz::cluster::published::{hex, sha256};
use vecaz::net::NetSpec;
use vecaz::rng::{Key, Purpose};
use vecaz::run::network::make_network;
use vecaz::weights::NetFile;

/// A run that was resumed from an earlier checkpoint may make other weights of the same version.
#[test]
fn a_worker_fetches_other_weights_of_the_same_version() {
    let Some(redis) = Redis::start(&[]) else { return };
    let setting = Setting::new(TINY);
    let mut network = setting.network();
    let mut set_weights = |updates: u64| {
        network.header.updates = updates;
        let bytes = network.to_bytes(Path::new("weights")).expect("in memory");
        redis.command_with(&["SET", "run:weights:1"], &bytes);
        redis.command(&["HSET", "run:state", "sha256", &hex(&sha256(&bytes))]);
    };
    publish(&mut redis.client(), &setting.config.to_toml(), setting.digest);
    set_weights(0);
    let fetched = || redis.number("commandstats", "cmdstat_get:calls=");
    let _worker = Vecaz::spawn(&["work", &redis.url("run"), "--threads", "1"]);
    wait_until("chunk", || redis.command(&["XLEN", "run:games"]) != redis::Value::Int(0));
    assert_eq!(fetched(), 1, "one GET, for the weights");
    set_weights(1);
    wait_until("second fetch", || fetched() == 2);
}

#[test]
fn changed_weights_are_refused_or_a_network_of_the_same_sizes() {
    let setting = Setting::new(TINY);
    let file = setting.network();
    let Setting { config, game, .. } = setting;
    let (spec, weights) = (NetSpec::new(&config.net, &game.sizes()), &file.weights);
    let name = Path::new("weights of version 3");
    let bytes = file.to_bytes(name).expect("in memory");
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().expect("eight")) as usize;
    let shapes = |weights: &vecaz::net::Weights| -> Vec<(String, Vec<usize>)> {
        weights.iter().map(|(name, array)| (name.clone(), array.shape.clone())).collect()
    };
    let mut rng = Key::new(13, Purpose::Evaluation).stream();
    let (mut refused, mut taken) = (0, 0);
    for number in 0..100_000 {
        let mut changed = bytes.clone();
        match rng.below(8) {
            0 => changed.truncate(rng.below(bytes.len())),
            1 => change(&mut changed, &mut rng),
            // A bit of an array.
            2 => changed[header + rng.below(bytes.len() - header)] ^= 1 << rng.below(8),
            // Bytes of one place copied to another.
            3 => {
                let [from, to] = [(); 2].map(|()| rng.below(bytes.len()));
                let length = 1 + rng.below(bytes.len() - from.max(to));
                changed[to..to + length].copy_from_slice(&bytes[from..from + length]);
            }
            // The header, which names the arrays, with its right length.
            _ => {
                let mut text = changed[8..header].to_vec();
                change(&mut text, &mut rng);
                changed = [&(text.len() as u64).to_le_bytes()[..], &text, &bytes[header..]].concat();
            }
        }
        match NetFile::from_bytes(name, &changed) {
            Err(error) => {
                refused += 1;
                assert_eq!(error.to_string().lines().count(), 1, "{number}: {error}");
            }
            Ok(found) => match make_network(&config, game.as_ref(), &spec, &found.weights) {
                Err(_) => refused += 1,
                Ok(_) => {
                    taken += 1;
                    assert_eq!(shapes(&found.weights), shapes(weights), "{number}");
                    let mut numbers = found.weights.values().flat_map(|array| &array.data);
                    assert!(numbers.all(|number| number.is_finite()), "{number}");
                }
            },
        }
    }
    // Taken files have other weights, or other text in the header.
    assert!(refused > 25_000 && taken > 2_500, "{refused} refused, {taken} taken");
}
