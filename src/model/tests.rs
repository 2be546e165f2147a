use super::*;
use crate::config::Arch;
use crate::game::{ObsShape, PointActions, PointOrder, Target, TargetKind, TargetShape};

fn spec(arch: Arch) -> NetSpec {
    NetSpec {
        arch,
        blocks: 1,
        channels: 4,
        policy_channels: 2,
        value_channels: 3,
        value_hidden: 5,
        obs: match arch {
            Arch::Edge => ObsShape { channels: 2, height: 6, width: 1 },
            Arch::Resnet | Arch::Mlp => ObsShape { channels: 2, height: 6, width: 7 },
        },
        num_actions: if arch == Arch::Edge { 6 } else { 7 },
        num_players: 2,
        zero_sum_pair: true,
        ..NetSpec::default()
    }
}

fn model(arch: Arch) -> Model {
    spec(arch).model().expect("a network")
}

fn names(model: &Model) -> Vec<&str> {
    model.params.iter().map(|param| param.name.as_str()).collect()
}

fn norm(name: &str) -> Vec<String> {
    ["weight", "bias", "running_mean", "running_var"].map(|part| format!("{name}.{part}")).to_vec()
}

/// Files of earlier versions have these tensors, and first weights are drawn in this order.
#[test]
fn parameters_have_the_names_and_order_of_files() {
    let one = |name: &str| vec![name.to_string()];
    let linear = |name: &str| vec![format!("{name}.weight"), format!("{name}.bias")];
    let resnet = [
        one("stem.weight"),
        norm("blocks.0.bn1"),
        one("blocks.0.conv1.weight"),
        norm("blocks.0.bn2"),
        one("blocks.0.conv2.weight"),
        norm("bn"),
        one("policy.conv.weight"),
        norm("policy.bn"),
        linear("policy.linear"),
        one("value.conv.weight"),
        norm("value.bn"),
        linear("value.hidden"),
        linear("value.out"),
    ];
    assert_eq!(names(&model(Arch::Resnet)), resnet.concat());
    let mlp = [
        linear("stem"),
        norm("blocks.0.bn1"),
        linear("blocks.0.linear1"),
        norm("blocks.0.bn2"),
        linear("blocks.0.linear2"),
        norm("bn"),
        linear("policy.linear"),
        linear("value.hidden"),
        linear("value.out"),
    ];
    assert_eq!(names(&model(Arch::Mlp)), mlp.concat());
    let edge = [
        one("stem.weight"),
        norm("blocks.0.bn1"),
        one("blocks.0.edge.weight"),
        one("blocks.0.vertex.weight"),
        norm("blocks.0.bn2"),
        one("blocks.0.out.weight"),
        norm("bn"),
        one("policy.linear.weight"),
        linear("value.hidden"),
        linear("value.out"),
    ];
    assert_eq!(names(&model(Arch::Edge)), edge.concat());
}

/// Logits at points need a board with as many actions, and a tower on it.
#[test]
fn logits_at_points_that_no_network_has_are_refused() {
    let at_points = |planes| Some(PointActions { planes, order: PointOrder::Rows });
    let refused = |spec: NetSpec| spec.model().expect_err("must be refused").to_string();
    let error = refused(NetSpec { point_actions: at_points(1), ..spec(Arch::Resnet) });
    assert!(error.contains("net.policy_head: got points, expected dense: the game has fewer"), "{error}");
    let spec = |arch| NetSpec { num_actions: 90, ..spec(arch) };
    for planes in [0, 3, usize::MAX] {
        let refused = refused(NetSpec { point_actions: at_points(planes), ..spec(Arch::Resnet) });
        assert!(refused.contains("net.policy_head"), "{refused}");
    }
    let mlp = refused(NetSpec { point_actions: at_points(2), ..spec(Arch::Mlp) });
    assert!(mlp.contains("net.policy_head: got points, expected dense, or net.arch"), "{mlp}");
    let model = NetSpec { point_actions: at_points(2), ..spec(Arch::Resnet) }.model().expect("a network");
    let points = model.params.iter().find(|param| param.name == "policy.points.weight").expect("its name");
    assert_eq!((&points.shape[..], model.num_actions()), (&[2 + 6, 2, 1, 1][..], 90));
}

/// Files of networks without optional layers say nothing of them, and files that say nothing have none.
#[test]
fn absent_layers_are_absent_from_files() {
    let plain = spec(Arch::Resnet);
    let text = serde_json::to_string(&plain).expect("written");
    let absent = |key: &str| !text.contains(key);
    assert!(["point_actions", "value_head", "auxiliary"].into_iter().all(absent), "{text}");
    assert_eq!(serde_json::from_str::<NetSpec>(&text).expect("read"), plain);
    let point_actions = Some(PointActions { planes: 3, order: PointOrder::Columns });
    let with = NetSpec { point_actions, ..plain };
    let text = serde_json::to_string(&with).expect("written");
    assert_eq!(serde_json::from_str::<NetSpec>(&text).expect("read"), with);
}

#[test]
fn parameters_have_torch_shapes() {
    let find = |arch, name: &str| {
        let model = model(arch);
        model.params.iter().find(|param| param.name == name).expect(name).shape.clone()
    };
    assert_eq!(find(Arch::Resnet, "stem.weight"), [4, 2, 3, 3]);
    assert_eq!(find(Arch::Resnet, "value.conv.weight"), [3, 4, 1, 1]);
    assert_eq!(find(Arch::Resnet, "policy.linear.weight"), [7, 2 * 42]);
    assert_eq!(find(Arch::Resnet, "value.hidden.weight"), [5, 3 * 42]);
    assert_eq!(find(Arch::Mlp, "stem.weight"), [4, 84]);
    assert_eq!(find(Arch::Mlp, "value.out.weight"), [1, 5]);
    assert_eq!(find(Arch::Edge, "blocks.0.vertex.weight"), [4, 4]);
    assert_eq!(find(Arch::Edge, "policy.linear.weight"), [1, 4]);
}

#[test]
fn multiply_adds_are_those_on_the_board() {
    // 3x3 taps on the board, both heads' 1x1 convolutions and three linear layers.
    let taps = (3 * 6 - 2) * (3 * 7 - 2);
    let heads = 42 * (4 * 5 + 2 * 7 + 3 * 5) + 5;
    assert_eq!(model(Arch::Resnet).multiply_adds(), taps * (2 * 4 + 2 * 4 * 4) + heads);
    let at_points = NetSpec { num_actions: 43, point_actions: Some(PointActions::ONE), ..spec(Arch::Resnet) };
    let saved = 42 * 2 * 7 - 42 * 2 * 2;
    let model_at_points = at_points.model().expect("a network");
    assert_eq!(model_at_points.multiply_adds() + saved, model(Arch::Resnet).multiply_adds());
    assert_eq!(model(Arch::Mlp).multiply_adds(), 84 * 4 + 2 * 16 + 4 * 7 + 4 * 5 + 5);
    // Six edges and four vertices; two triangles at every edge in two of four channels.
    let block = 6 * 16 + 4 * 16 + 6 * 2 * 2 + 6 * 16;
    assert_eq!(model(Arch::Edge).multiply_adds(), 6 * 2 * 4 + block + 6 * 4 + 4 * 5 + 5);
}

#[test]
fn first_weights_are_wide_inside_and_narrow_at_the_outputs() {
    let spec = NetSpec { channels: 96, value_hidden: 80, ..spec(Arch::Resnet) };
    let model = spec.model().expect("a network");
    let weights = model.initial_weights(3);
    assert!(model.check(&weights).is_ok());
    let variance = |name: &str| {
        let data = &weights[name].data;
        let fan_in = data.len() / weights[name].shape[0];
        data.iter().map(|x| x * x).sum::<f32>() / data.len() as f32 * fan_in as f32
    };
    assert!((variance("blocks.0.conv1.weight") - 2.0).abs() < 0.1);
    assert_eq!(variance("blocks.0.conv2.weight"), 0.0, "a block begins as the identity");
    assert!((variance("policy.linear.weight") - 0.02).abs() < 0.004);
    assert!((variance("value.hidden.weight") - 2.0).abs() < 0.1);
    assert!(variance("value.out.weight") < 0.05);
    assert!(weights["bn.running_var"].data.iter().all(|&x| x == 1.0));
    assert!(weights["value.out.bias"].data.iter().all(|&x| x == 0.0));
}

#[test]
fn flat_arrays_and_named_ones_hold_the_same() {
    let model = model(Arch::Edge);
    let weights = model.random_weights(crate::rng::Key::new(2, crate::rng::Purpose::Weights));
    let (parameters, statistics) = model.flatten(&weights).expect("its own");
    assert_eq!((parameters.len(), statistics.len()), (model.num_parameters(), 6 * 4));
    assert_eq!(model.unflatten(&parameters, &statistics), weights);
    let decayed: f32 = model.decay_mask().iter().sum();
    assert_eq!(decayed as usize, 2 * 4 + 3 * 16 + 4 + 4 * 5 + 5);
}

#[test]
fn wrong_weights_are_named() {
    let model = model(Arch::Mlp);
    let good = model.initial_weights(1);
    assert!(model.check(&good).is_ok());
    let message = |change: &dyn Fn(&mut Weights)| {
        let mut weights = good.clone();
        change(&mut weights);
        model.check(&weights).expect_err("must be refused").to_string()
    };
    assert!(message(&|w| drop(w.remove("bn.bias"))).contains("bn.bias"));
    let extra = Array { shape: vec![1], data: vec![0.0] };
    assert!(message(&|w| drop(w.insert("extra".into(), extra.clone()))).contains("extra"));
    assert!(message(&|w| w.get_mut("stem.bias").unwrap().shape = vec![2, 2]).contains("stem.bias"));
    assert!(message(&|w| w.get_mut("stem.bias").unwrap().data[1] = f32::NAN).contains("not finite"));
    let none = NetSpec { channels: 0, ..spec(Arch::Mlp) }.model().expect("a list");
    assert!(none.check(&none.initial_weights(1)).is_err());
}

#[test]
fn one_value_stands_for_two_players_only() {
    let three = NetSpec { num_players: 3, ..spec(Arch::Mlp) };
    assert!(three.model().is_err());
    let boards = NetSpec { num_actions: 5, ..spec(Arch::Edge) };
    assert!(boards.model().expect_err("six edges").to_string().contains("net.arch"));
}

#[test]
fn a_target_with_the_name_of_another_head_is_refused() {
    for name in ["policy", "value", "values", "outcome"] {
        let auxiliary = vec![Target::new(name, TargetShape::Vector(2), TargetKind::Amount)];
        let error = NetSpec { auxiliary, ..spec(Arch::Mlp) }.model().expect_err(name).to_string();
        assert!(error.contains(&format!("net.auxiliary: got {name}, expected targets")), "{error}");
    }
}
