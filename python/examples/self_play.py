"""A network in NumPy under the trees of vecaz: learns tic-tac-toe by self-play and beats random play.

    python self_play.py

The network is linear with a softmax policy and a tanh value. Anything that maps `[M, F]` to `[M, A]` and `[M]` takes its place, such as a
module of PyTorch: `lambda obs: [x.numpy() for x in model(torch.from_numpy(obs))]`.
"""

import numpy as np

import vecaz

GAME, N, STEPS, RATE = "tic_tac_toe", 256, 250, 0.5


class Linear:
    """Logits `[M, A]` and values `[M]` of observations `[M, F]`."""

    def __init__(self, features, actions):
        self.policy, self.value = np.zeros((features + 1, actions)), np.zeros(features + 1)

    def __call__(self, obs):
        inputs = np.c_[obs, np.ones(len(obs))]
        return inputs @ self.policy, np.tanh(inputs @ self.value)

    def update(self, obs, policy, value):
        """One step of gradient descent towards `policy [M, A]` and `value [M]`."""
        inputs, (logits, found) = np.c_[obs, np.ones(len(obs))], self(obs)
        found_policy = np.exp(logits - logits.max(axis=1, keepdims=True))
        found_policy /= found_policy.sum(axis=1, keepdims=True)
        self.policy += RATE * inputs.T @ (policy - found_policy) / len(obs)
        self.value += RATE * inputs.T @ ((value - found) * (1 - found**2)) / len(obs)


def learn():
    """Self-play: every position is searched, and the network learns the search's policy and value."""
    envs, rng = vecaz.make(GAME, num_envs=N, seed=1), np.random.default_rng(1)
    network, rows = Linear(envs.observe()[0].size, envs.num_actions), np.arange(N)
    for step in range(STEPS):
        found = vecaz.search(envs, network, simulations=16, noise=True, seed=step)
        network.update(envs.observe().reshape(N, -1), found.policy, found.value[rows, envs.players])
        envs.step((found.policy.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1))
    return network


def match(network, games=500):
    """Mean result of the network's search as player 0 against random play."""
    envs, score, ended = vecaz.make(GAME, num_envs=games, seed=2, autoreset="off"), 0.0, 0
    while ended < games:
        best = vecaz.search(envs, network, simulations=16).action
        rewards, terminated = envs.step(np.where(envs.players == 0, best, envs.sample_actions()))
        score, ended = score + rewards[:, 0].sum(), terminated.sum()
    return score / games


if __name__ == "__main__":
    before, after = match(lambda obs: (np.zeros((len(obs), 9)), np.zeros(len(obs)))), match(learn())
    print(f"against random play: {before:+.3f} without a network, {after:+.3f} with the one that learned")
