//! Samples per second of one core that writes or reads chunks: `cargo bench --bench cluster`. Reading is the learner's work on each
//! chunk: checksum, decompression, replay by the rules, storing in the replay buffer.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use vecaz::backend::AnyGame;
use vecaz::backend::RootCache;
use vecaz::cluster::chunk::{Chunk, ChunkLimits, ChunkReader, ChunkWriter, Origin};
use vecaz::cluster::{Incarnation, digest};
use vecaz::config::{Config, Layers};
use vecaz::model::NetSpec;
use vecaz::play::PlayPlan;
use vecaz::play::{FinishedGame, new_slots};
use vecaz::registry::any_game;
use vecaz::replay::Replay;
use vecaz::run::learner::learner;
use vecaz::run::network::make_network;
use vecaz::selfplay::SelfPlay;

const WORKER: Incarnation = Incarnation(77);
/// The measured games, and the number of games at once.
const GAMES: [(&str, usize); 3] =
    [("name = 'connect_four'", 256), ("name = 'hex'\nsize = 13", 24), ("name = 'go'\nsize = 9", 24)];

/// Games of one setting, and how to write and read them.
struct Setting {
    config: Config,
    game: Arc<dyn AnyGame>,
    plan: PlayPlan,
    limits: ChunkLimits,
    digest: [u8; 32],
    finished: Vec<FinishedGame>,
}

impl Setting {
    /// Plays `count` games at once, until `count` are finished.
    fn new(game: &str, count: usize) -> Self {
        let text = format!(
            "[game]\n{game}\n[search]\nsimulations = 16\ncache_entries = 0\n[selfplay]\ngames = {count}\n[net]\nblocks = 1\nchannels = 16\n[replay]\ncapacity = 20000\n[train]\nmin_samples = 1000"
        );
        let config = Layers::default().text(&text, "bench").and_then(Layers::resolve).expect("valid");
        let game = any_game(config.game_name(), &config.game_options()).expect("registered");
        let sizes = game.sizes();
        let (plan, limits) = (PlayPlan::new(&config, &sizes), ChunkLimits::of(game.as_ref()).expect("small"));
        // Random weights: their policies compress as badly as those of a trained network.
        let spec = NetSpec::new(&config.net, &sizes);
        let weights =
            learner(&config, &game, &spec, None).and_then(|learner| learner.weights()).expect("weights");
        let (network, _) = make_network(&config, game.as_ref(), &spec, &weights).expect("a network");
        let slots = new_slots(WORKER.first_slot(), count, game.as_ref(), &plan);
        let mut selfplay = SelfPlay::new(&game, &config, network.as_ref(), slots, 1).expect("fits");
        selfplay.set_network(network.as_ref(), RootCache::default()).expect("a network");
        let mut finished: Vec<FinishedGame> = Vec::new();
        while finished.len() < count {
            finished.extend(selfplay.poll().expect("played"));
        }
        finished.truncate(count);
        let digest = digest(&config, game.as_ref());
        Self { config, game, plan, limits, digest, finished }
    }

    /// The chunks of the games.
    fn write(&self) -> Vec<Vec<u8>> {
        let sender = Origin { name: "bench".into(), incarnation: WORKER, digest: self.digest };
        let mut writer = ChunkWriter::new(sender, self.limits).expect("memory");
        let mut chunks = Vec::new();
        for game in &self.finished {
            writer.push(game).expect("fits");
            if writer.is_full() {
                chunks.push(writer.finish(1).expect("compressed").1);
            }
        }
        chunks.push(writer.finish(1).expect("compressed").1);
        chunks
    }
}

fn measure(criterion: &mut Criterion) {
    for (game, count) in GAMES {
        let setting = Setting::new(game, count);
        let Setting { config, game, plan, limits, digest, finished } = &setting;
        let samples: usize = finished.iter().map(|game| game.samples.len()).sum();
        let chunks = setting.write();
        let bytes: usize = chunks.iter().map(Vec::len).sum();
        println!(
            "{}: {count} games, {samples} samples, {} chunks, {:.1} bytes a sample, 1 thread, commit {}",
            game.name(),
            chunks.len(),
            bytes as f64 / samples as f64,
            env!("VECAZ_COMMIT")
        );
        let mut group = criterion.benchmark_group(game.name());
        group.throughput(Throughput::Elements(samples as u64));
        group.bench_function("write", |bench| bench.iter(|| black_box(setting.write())));
        let mut reader = ChunkReader::new().expect("memory");
        let mut replay = Replay::new(game.as_ref(), config.replay.capacity);
        let mut read = |bytes: &Vec<u8>| {
            let chunk = Chunk::parse(bytes, digest, limits).expect("whole");
            for finished in reader.games(&chunk, game.as_ref(), plan).expect("its games") {
                finished.samples.iter().for_each(|sample| replay.push(sample, &finished.end));
            }
        };
        group.bench_function("read", |bench| {
            bench.iter_batched(|| (), |()| chunks.iter().for_each(&mut read), BatchSize::PerIteration);
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().without_plots().sample_size(20);
    targets = measure
}
criterion_main!(benches);
