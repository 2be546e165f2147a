//! The key that a wrong one most probably means: the same name in other letters or in another section, a name that is usual in other
//! programs, or a name that differs in few letters.

/// A key in each line, and the names of the same or the nearest meaning in other programs (AlphaZero's pseudocode, MCTX, KataGo, Leela Chess
/// Zero, OpenSpiel, alpha-zero-general, Stable Baselines).
const ALIASES: &str = "\
search.simulations: sims num_sims num_simulations n_simulations mcts_simulations num_mcts_sims max_simulations playouts num_playouts n_playout readouts num_readouts rollouts visits max_visits max_playouts
search.c_init: c_puct puct puct_c uct_c pb_c_init c_uct cpuct_exploration
search.c_base: pb_c_base cpuct_base
search.dirichlet_epsilon: epsilon dir_eps exploration_fraction root_exploration_fraction dirichlet_weight dirichlet_fraction noise_weight noise_eps policy_epsilon root_noise_weight
search.dirichlet_alpha: alpha dir_alpha root_dirichlet_alpha noise_alpha policy_alpha dirichlet_noise
search.max_num_considered_actions: num_considered_actions max_considered_actions gumbel_actions gumbel_k
search.leaves: virtual_loss parallel_leaves leaf_batch_size virtual_visits minibatch_size
search.fpu_reduction: fpu_reduction_max fpu_value
search.cache_entries: nn_cache_size cache_size eval_cache_size
search.reuse: tree_reuse reuse_tree keep_tree reuse_subtree
selfplay.games: num_games n_games num_envs n_envs parallel_games num_parallel_games num_game_threads selfplay_batch_size
selfplay.samples_per_epoch: games_per_epoch num_eps num_episodes games_per_iteration steps_per_epoch
selfplay.temperature_plies: temperature temp_threshold temperature_threshold temperature_moves num_sampling_moves temperature_drop temp_moves temperature_cutoff
selfplay.opening_plies: random_moves random_opening_moves num_random_moves opening_moves
replay.capacity: buffer_size replay_buffer_size replay_size replay_capacity memory_size window_size max_buffer_size buffer_capacity
train.lr: learning_rate lr_init base_lr max_lr initial_lr eta
train.lr_updates: max_training_steps training_steps num_training_steps lr_decay_steps decay_steps
train.lr_final: min_lr final_lr lr_decay lr_min
train.warmup_updates: warmup warmup_steps lr_warmup_steps
train.batch: batch_size train_batch_size training_batch_size samples_per_batch
train.weight_decay: l2 l2_reg l2_regularization l2_coeff regularization wd
train.clip_norm: grad_clip gradient_clip max_grad_norm clip_grad_norm gradient_clipping
train.replay_ratio: train_ratio samples_per_insert sample_reuse training_ratio reuse_ratio
train.value_weight: value_loss_weight value_coef vf_coef value_loss_scale value_loss_coef
net.blocks: num_blocks n_blocks num_res_blocks res_blocks residual_blocks num_layers layers nn_depth depth
net.channels: num_channels n_channels filters num_filters hidden_size hidden_dim nn_width width
run.epochs: num_epochs n_epochs max_epochs iterations num_iterations num_iters n_iter max_iterations
run.threads: num_threads n_threads num_workers n_workers workers num_actors n_jobs
eval.every: eval_interval eval_freq evaluation_interval eval_every eval_frequency";

/// The lines of [`ALIASES`]: keys with the names elsewhere.
fn aliases() -> impl Iterator<Item = (&'static str, std::str::SplitWhitespace<'static>)> {
    let of_line =
        |line: &'static str| line.split_once(": ").map(|(key, names)| (key, names.split_whitespace()));
    ALIASES.lines().filter_map(of_line)
}

/// The dotted key in `known` that `typed` most probably means; None if none is near. The part after the last dot decides; the section
/// only between equal names.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (section, name) = split(typed);
    let known: Vec<&str> = known.into_iter().collect();
    let alias = alias(&name).filter(|key| known.contains(key));
    let scored = known.iter().filter_map(|&key| {
        let (its_section, its_name) = split(key);
        let distance = near_distance(&name, &its_name)?;
        // Without a section, the first of equal names counts.
        let of_section =
            if section.is_empty() { 0 } else { strsim::damerau_levenshtein(&section, &its_section) };
        Some((distance, of_section, key))
    });
    let near = scored.min_by_key(|(distance, of_section, _)| (*distance, *of_section));
    match (near, alias) {
        (Some((0, _, key)), _) => Some(key),
        (_, Some(alias)) => known.iter().copied().find(|key| *key == alias),
        (near, None) => near.map(|(.., key)| key),
    }
}

/// The end of a sentence that lists `known` names: "; the nearest is hex", or nothing if none is near.
pub fn nearest_hint<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(typed, known).map(|near| format!("; the nearest is {near}")).unwrap_or_default()
}

/// The key of the same meaning as the `name` of another program, in lower case without separators.
fn alias(name: &str) -> Option<&'static str> {
    aliases().find_map(|(key, mut names)| names.any(|alias| split(alias).1 == name).then_some(key))
}

/// The section and the name of a dotted key, in lower case without separators of words.
fn split(key: &str) -> (String, String) {
    let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
    [section, name].map(|part| part.to_lowercase().replace(['_', '-', ' '], "")).into()
}

/// The number of letters in which two names differ, if it is at most a third of either's.
pub fn near_distance(typed: &str, name: &str) -> Option<usize> {
    let distance = strsim::damerau_levenshtein(typed, name);
    (3 * distance <= typed.chars().count().min(name.chars().count())).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn known() -> Vec<String> {
        let sections = Config::default().sections();
        let keys = sections
            .iter()
            .flat_map(|(section, _, keys)| keys.iter().map(move |key| format!("{section}.{}", key.name)));
        keys.chain(["game.name".to_string()]).collect()
    }

    #[test]
    fn the_last_part_counts_in_any_letters_and_nothing_far_is_suggested() {
        let known = known();
        for (typed, expected) in [
            ("search.simulatons", Some("search.simulations")),
            ("serch.simulations", Some("search.simulations")),
            ("simulations", Some("search.simulations")),
            ("evl.simulations", Some("eval.simulations")),
            ("Search.Simulations", Some("search.simulations")),
            ("train.channel", Some("net.channels")),
            ("TRAIN.LR", Some("train.lr")),
            ("train.replayRatio", Some("train.replay_ratio")),
            ("Game.name", Some("game.name")),
            ("[GAME] size", None),
            ("GAME.size", None),
            ("train.qqq", None),
            ("net.dropout", None),
            ("run.name", Some("game.name")),
            ("run.sed", Some("run.seed")),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known.iter().map(String::as_str)), expected, "{typed}");
        }
    }

    #[test]
    fn names_usual_elsewhere_lead_to_keys_that_exist() {
        let known = known();
        for (typed, expected) in [
            ("search.c_puct", "search.c_init"),
            ("num_simulations", "search.simulations"),
            ("training.learning_rate", "train.lr"),
            ("batch-size", "train.batch"),
            ("mcts.epsilon", "search.dirichlet_epsilon"),
            ("numResBlocks", "net.blocks"),
        ] {
            assert_eq!(nearest(typed, known.iter().map(String::as_str)), Some(expected), "{typed}");
        }
        let mut all = Vec::new();
        assert_eq!(ALIASES.lines().count(), aliases().count());
        for (key, names) in aliases() {
            assert!(known.iter().any(|name| name == key), "{key} is no key");
            for alias in names {
                assert!(!known.iter().any(|name| split(name).1 == split(alias).1), "{alias} is a key");
                assert_eq!(nearest(alias, known.iter().map(String::as_str)), Some(key), "{alias}");
                all.push(split(alias).1);
            }
        }
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count, "one meaning each");
    }
}
