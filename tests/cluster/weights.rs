//! Weights from the wire: whatever their bytes, they are refused or a network of the run's sizes.

use super::chunks::change;
use super::play::Setting;
use super::server::TINY;
use std::path::Path;
use vecaz::net::NetSpec;
use vecaz::rng::{Key, Purpose};
use vecaz::run::learner::learner;
use vecaz::run::network::place;
use vecaz::weights::NetFile;

#[test]
fn changed_weights_are_refused_or_a_network_of_the_same_sizes() {
    let Setting { config, game, .. } = Setting::new(TINY);
    let spec = NetSpec::new(&config.net, &game.sizes());
    let weights = learner(&config, &game, &spec, None).and_then(|learner| learner.weights());
    let weights = weights.expect("weights");
    let name = Path::new("weights of version 3");
    let file = NetFile::new(game.as_ref(), &spec, weights.clone(), 0).expect("a file");
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
            // Some bytes of one place at another.
            3 => {
                let [from, to] = [(); 2].map(|()| rng.below(bytes.len()));
                let length = 1 + rng.below(bytes.len() - from.max(to));
                changed[to..to + length].copy_from_slice(&bytes[from..from + length]);
            }
            // The header, which names the arrays, with its true length.
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
            Ok(found) => match place(&config, game.as_ref(), &spec, &found.weights) {
                Err(_) => refused += 1,
                Ok(_) => {
                    taken += 1;
                    assert_eq!(shapes(&found.weights), shapes(&weights), "{number}");
                    let mut numbers = found.weights.values().flat_map(|array| &array.data);
                    assert!(numbers.all(|number| number.is_finite()), "{number}");
                }
            },
        }
    }
    // What is taken has other numbers, or other words in its header.
    assert!(refused > 25_000 && taken > 2_500, "{refused} refused, {taken} taken");
}
