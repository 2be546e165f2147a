use super::net_file::checking_network;
use super::*;
use crate::batch::ErasedRules;
use crate::config::{Arch, IsaChoice, NetConfig, Precision};
use crate::error::Error;
use crate::game::{Target, TargetKind, TargetShape};
use crate::isa::Isa;
use crate::model::{Array, NetSpec, Weights};
use crate::net::cpu::{self, CpuNet};
use crate::registry::any_game;
use std::sync::Arc;

fn game(name: &str) -> Arc<dyn ErasedRules> {
    any_game(name, &toml::Table::new()).expect("registered")
}

fn file(name: &str, arch: Arch) -> NetFile {
    let game = game(name);
    let config = NetConfig { arch, blocks: 1, channels: 12, ..NetConfig::default() };
    let net = NetSpec::new(&config, &game.sizes());
    NetFile::new(&*game, &net, net.model().expect("a network").initial_weights(4), 7).expect("file")
}

/// The error of loading a file whose arrays were changed.
fn refusal(change: impl Fn(&mut Weights)) -> String {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("net.safetensors");
    file("tic_tac_toe", Arch::Mlp).save(&path).expect("saved");
    let (mut arrays, header) = load_arrays(&path).expect("loaded");
    change(&mut arrays);
    save_arrays(&path, &arrays, &header).expect("saved");
    let error = NetFile::load(&path).expect_err("damaged");
    assert!(matches!(error, Error::Format { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("net.safetensors") && !text.contains('\n'), "{text}");
    text
}

#[test]
fn a_file_comes_back_whole_and_the_same_content_gives_the_same_bytes() {
    let folder = tempfile::tempdir().expect("folder");
    for (name, arch) in [("connect_four", Arch::Resnet), ("tic_tac_toe", Arch::Mlp)] {
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        let file = file(name, arch);
        file.save(&a).expect("saved");
        let loaded = NetFile::load(&a).expect("loaded");
        assert_eq!(loaded, file);
        file.save(&b).expect("saved again");
        assert_eq!(std::fs::read(&a).expect("a"), std::fs::read(&b).expect("b"));
        loaded.spec_for(&*game(name)).expect("its game");
    }
}

#[test]
fn an_exported_file_describes_its_layers() {
    let folder = tempfile::tempdir().expect("folder");
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let file = file("connect_four", Arch::Resnet);
    file.save(&a).expect("saved");
    let whole = NetFile::load(&a).expect("loaded");
    let exported = export(whole, &b, FileFormat::Safetensors, NumberFormat::F32).expect("exported");
    assert_eq!(NetFile::load(&b).expect("loaded"), exported);
    let described = exported.header.model.as_ref().expect("a description");
    let model = file.header.net.model().expect("a network");
    assert_eq!(described["layers"].as_array().map(Vec::len), Some(model.layers.len()));
    assert_eq!(described["layers"][1]["kind"], "conv3x3");
    assert_eq!(described["layers"][1]["name"], "stem");
    let heads = described["heads"].as_array().expect("a list");
    assert_eq!(heads.len(), 2);
    for (head, (role, play)) in heads.iter().zip([("policy", model.policy()), ("value", model.value())]) {
        assert_eq!((&head["role"], &head["play"]), (&serde_json::json!(role), &serde_json::json!(play)));
    }
    let header = NetworkHeader { model: None, ..exported.header.clone() };
    assert_eq!(NetFile { header, ..exported }, file);
}

#[test]
fn the_header_says_what_the_network_is_for() {
    let header = file("connect_four", Arch::Resnet).header;
    assert_eq!((header.game.as_str(), header.updates), ("connect_four", 7));
    let names: Vec<Option<String>> = (0..7).map(|column| Some(column.to_string())).collect();
    assert_eq!(header.actions, names);
    assert!(header.meaning.contains("-v"));
}

#[test]
fn the_self_check_sees_a_changed_weight() {
    let file = file("connect_four", Arch::Resnet);
    let net = &file.header.net;
    let mut right = checking_network(net, &file.weights).expect("network");
    assert!(file.verify(&mut right).expect("the same network") < 1e-6);
    let mut weights = file.weights.clone();
    weights.get_mut("stem.weight").expect("stem").data.iter_mut().for_each(|w| *w *= -1.0);
    let mut wrong = checking_network(net, &weights).expect("network");
    let error = file.verify(&mut wrong).expect_err("another network").to_string();
    assert!(error.contains("self-check"), "{error}");
}

#[test]
fn missing_surplus_misshapen_and_infinite_tensors_are_refused() {
    let text = refusal(|arrays| drop(arrays.remove("stem.bias")));
    assert!(text.contains("tensor stem.bias: found none"), "{text}");
    let text =
        refusal(|arrays| drop(arrays.insert("surplus".into(), Array { shape: vec![2], data: vec![0.0; 2] })));
    assert!(text.contains("surplus"), "{text}");
    let text = refusal(|arrays| arrays.get_mut("stem.weight").expect("stem").shape.reverse());
    assert!(text.contains("found [18, 12]"), "{text}");
    let text = refusal(|arrays| arrays.get_mut("bn.bias").expect("bias").data[3] = f32::INFINITY);
    assert!(text.contains("tensor bn.bias is not finite (inf)"), "{text}");
    let text = refusal(|arrays| drop(arrays.remove("selfcheck.obs")));
    assert!(text.contains("selfcheck.obs is missing"), "{text}");
}

#[test]
fn cut_short_and_foreign_files_are_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("net.safetensors");
    file("tic_tac_toe", Arch::Mlp).save(&path).expect("saved");
    let bytes = std::fs::read(&path).expect("read");
    let mut cases: Vec<Vec<u8>> =
        [0, 5, 100, bytes.len() / 2, bytes.len() - 1].map(|n| bytes[..n].to_vec()).to_vec();
    cases.push([&bytes[..], b"more"].concat());
    cases.push(b"PK\x03\x04 something else altogether, long enough".to_vec());
    for case in cases {
        let error = NetFile::from_bytes(&path, &case).expect_err("damaged");
        assert!(matches!(error, Error::Format { .. }) && !error.to_string().contains('\n'), "{error}");
    }
    assert!(matches!(NetFile::load(&folder.path().join("absent")), Err(Error::Io { .. })));
    let foreign = safetensors::serialize(Vec::<(&str, safetensors::tensor::TensorView<'_>)>::new(), None);
    let error = NetFile::from_bytes(&path, &foreign.expect("bytes")).expect_err("foreign").to_string();
    assert!(error.contains("not one of vecaz"), "{error}");
}

#[test]
fn absurd_sizes_are_refused_before_anything_is_made_of_them() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("net.safetensors");
    let whole = file("tic_tac_toe", Arch::Mlp);
    type Change = fn(&mut NetSpec);
    let cases: [(Change, &str); 4] = [
        (|net| net.blocks = usize::MAX, "net.blocks: got 18446744073709551615, expected"),
        (|net| net.obs.channels = usize::MAX, "obs.channels is 18446744073709551615, expected 1..=65536"),
        (|net| net.num_actions = 0, "num_actions is 0, expected 1..=65536"),
        (|net| net.num_players = 9, "num_players is 9, expected 1..=8"),
    ];
    for (change, what) in cases {
        let mut file = whole.clone();
        change(&mut file.header.net);
        file.save(&path).expect("saved");
        let error = NetFile::load(&path).expect_err("absurd").to_string();
        assert!(error.contains(what), "{error}");
    }
}

/// A run would train for hours and write files that no command reads.
#[test]
fn networks_whose_files_could_not_be_read_are_refused_before_there_is_one() {
    let game = game("tic_tac_toe");
    let spec = |config: NetConfig| NetSpec::new(&NetConfig { arch: Arch::Mlp, ..config }, &game.sizes());
    let refused = |net: &NetSpec| FileTemplate::new(&*game, net).expect_err("refused").to_string();
    let plain = spec(NetConfig::default());
    for (len, is_read) in [(0, false), (65_536, true), (65_537, false)] {
        let target = Target::new("stones", TargetShape::Vector(len), TargetKind::Amount);
        let net = NetSpec { auxiliary: vec![target], ..plain.clone() };
        match is_read {
            true => assert!(FileTemplate::new(&*game, &net).is_ok(), "{len}"),
            false => {
                let expected = "net.auxiliary: got stones, expected targets of 1 to 65536 numbers";
                assert!(refused(&net).contains(expected), "{}", refused(&net));
            }
        }
    }
    let large = spec(NetConfig { channels: 4096, blocks: 32, ..NetConfig::default() });
    let error = refused(&large);
    assert!(error.starts_with("networks for tic_tac_toe: their weights have 4"), "{error}");
    assert!(FileTemplate::new(&*game, &NetSpec { blocks: 29, ..large }).is_ok());
}

#[test]
fn another_game_is_refused() {
    let file = file("connect_four", Arch::Resnet);
    let error = file.spec_for(&*game("tic_tac_toe")).expect_err("another game").to_string();
    assert!(
        error.contains("found connect_four (rows = 6") && error.contains("expected tic_tac_toe"),
        "{error}"
    );
    let options = toml::Table::from_iter([("rows".to_string(), toml::Value::Integer(5))]);
    let smaller = any_game("connect_four", &options).expect("valid");
    assert!(file.spec_for(&*smaller).is_err());
    let weights = file.weights.clone();
    assert!(NetFile::new(&*smaller, &file.header.net, weights, 0).is_err());
}

/// Where games start and after how many plies they end is no rule, and a network serves all of it; komi is one.
#[test]
fn a_network_serves_other_starts_and_lengths_of_its_game_and_no_other_rules() {
    let with = |name: &str, options: &str| any_game(name, &options.parse().expect("TOML")).expect("valid");
    for (name, options) in [
        ("chess", "fen = '4k3/8/8/8/8/8/8/4K2R w K - 0 1'"),
        ("chess", "max_plies = 256"),
        ("go", "max_plies = 300"),
        ("backgammon", "ply_limit = 300"),
    ] {
        let file = file(name, Arch::Mlp);
        assert_eq!(file.spec_for(&*with(name, options)).expect(options), file.header.net);
    }
    for (name, options) in [
        ("go", "komi = 0.5"),
        ("go", "komi = 0.5\nmax_plies = 300"),
        ("go", "size = 7"),
        ("backgammon", "simple_doubles = true\nply_limit = 300"),
    ] {
        assert!(file(name, Arch::Mlp).spec_for(&*with(name, options)).is_err(), "{options}");
    }
}

/// A network of an earlier program, whose game had fewer options: those that are missing have their defaults.
#[test]
fn a_game_that_has_new_options_takes_older_networks() {
    let mut file = file("backgammon", Arch::Mlp);
    assert!(file.header.options.remove("network_sees").is_some());
    file.spec_for(&*game("backgammon")).expect("its game");
    let features = "network_sees = 'features'".parse().expect("TOML");
    let other = any_game("backgammon", &features).expect("valid");
    let error = file.spec_for(&*other).expect_err("other observations").to_string();
    assert!(error.starts_with("the network's game: found backgammon"), "{error}");
}

#[test]
fn other_sizes_of_the_same_game_are_named() {
    let mut file = file("backgammon", Arch::Mlp);
    file.header.net.obs.channels = 235;
    let error = file.spec_for(&*game("backgammon")).expect_err("other sizes").to_string();
    let sizes = |numbers| format!("observations of {numbers} numbers, 156 actions, 2 players");
    let expected =
        format!("the network's sizes for backgammon: found {}, expected {}", sizes(235), sizes(211));
    assert_eq!(error, expected);
}

#[test]
fn an_edge_network_serves_any_number_of_vertices_and_no_other_rules() {
    let clique = |n: i64, k: i64| {
        let options = [("n", n), ("k", k)].map(|(key, value)| (key.to_string(), toml::Value::Integer(value)));
        any_game("clique", &toml::Table::from_iter(options)).expect("valid")
    };
    let file = |arch| {
        let (game, config) =
            (clique(6, 4), NetConfig { arch, blocks: 1, channels: 12, ..NetConfig::default() });
        let net = NetSpec::new(&config, &game.sizes());
        NetFile::new(&*game, &net, net.model().expect("a network").initial_weights(4), 7).expect("file")
    };
    let edge = file(Arch::Edge);
    let spec = edge.spec_for(&*clique(9, 4)).expect("another number of vertices");
    assert_eq!((spec.num_actions, spec.obs.height, spec.channels), (36, 36, 12));
    assert!(checking_network(&spec, &edge.weights).is_ok());
    let error = edge.spec_for(&*clique(9, 3)).expect_err("another clique").to_string();
    assert!(error.contains("k = 4") && error.contains("k = 3"), "{error}");
    let error = file(Arch::Mlp).spec_for(&*clique(9, 4)).expect_err("a perceptron").to_string();
    assert!(error.contains("only an edge network serves another game.n"), "{error}");
}

#[test]
fn a_network_is_packed_for_the_instructions_that_are_named() {
    let file = file("connect_four", Arch::Resnet);
    let packed = |isa| {
        let config = NetConfig { isa, precision: Precision::Bf16, ..NetConfig::default() };
        pack(&*game("connect_four"), &file.header.net, &file.weights, &config)
            .expect("any machine")
            .kernel_name()
    };
    let fastest = cpu::available_isas(Precision::Bf16)[0];
    let by_path =
        CpuNet::with_isa(&file.header.net, &file.weights, Precision::Bf16, fastest).expect("available");
    assert_eq!(packed(IsaChoice::Native), by_path.kernel_name());
    assert!(
        packed(IsaChoice::Only(Isa::Portable)).starts_with("portable"),
        "{}",
        packed(IsaChoice::Only(Isa::Portable))
    );
}
