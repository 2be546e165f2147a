//! The fused training pass as a candle operation, so that candle's autograd can go through it.

use super::params::Params;
use super::tower::{Outputs, Tower};
use crate::net::spec::NetSpec;
use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The network of a [`NetSpec`] in training mode, to be applied to candle tensors.
pub struct FusedNet {
    tower: Tower,
}

impl FusedNet {
    /// The network of `spec`.
    pub fn new(spec: &NetSpec) -> Self {
        Self { tower: Tower::new(spec) }
    }

    /// The places of the tensors in the flat parameters.
    pub fn params(&self) -> &Params {
        self.tower.params()
    }

    /// Logits and values, with a gradient for the parameters (none for the observations).
    ///
    /// # Shapes
    /// `obs [B, F]`, `parameters [num_parameters]` -> `[B, A + V]`, the values after the tanh.
    ///
    /// # Errors
    /// Where a tensor has another shape, is not f32, not contiguous or not on the CPU.
    pub fn apply(&self, obs: &Tensor, parameters: &Tensor) -> Result<Tensor> {
        obs.apply_op2(
            parameters,
            Op(Mutex::new(State { tower: self.tower.clone(), outputs: Outputs::default() })),
        )
    }
}

struct State {
    tower: Tower,
    outputs: Outputs,
}

struct Op(Mutex<State>);

impl Op {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn floats<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&storage.as_slice::<f32>()?[start..end]),
        None => bail!("the fused network takes contiguous tensors only"),
    }
}

impl CustomOp2 for Op {
    fn name(&self) -> &'static str {
        "fused-net"
    }

    fn cpu_fwd(
        &self,
        s1: &CpuStorage,
        l1: &Layout,
        s2: &CpuStorage,
        l2: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (obs, parameters) = (floats(s1, l1)?, floats(s2, l2)?);
        let state = &mut *self.state();
        let spec = &state.tower.spec;
        let (actions, values) = (spec.num_actions, spec.num_values());
        let (boards, features) = l1.shape().dims2()?;
        if features != spec.obs.len() || boards == 0 || parameters.len() != state.tower.params.num_parameters
        {
            bail!("the fused network got observations {:?} and {} parameters", l1.shape(), parameters.len());
        }
        state.outputs = state.tower.forward(parameters, obs);
        let rows = state.outputs.logits.chunks_exact(actions).zip(state.outputs.values.chunks_exact(values));
        let out = rows.flat_map(|(logits, values)| logits.iter().chain(values)).copied().collect();
        Ok((CpuStorage::F32(out), (boards, actions + values).into()))
    }

    fn bwd(
        &self,
        _obs: &Tensor,
        parameters: &Tensor,
        _out: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let state = &mut *self.state();
        let actions = state.tower.spec.num_actions;
        let part = |start: usize, len: usize| grad.narrow(1, start, len)?.flatten_all()?.to_vec1::<f32>();
        let d_logits = part(0, actions)?;
        let d_values = part(actions, state.tower.spec.num_values())?;
        let mut gradient = vec![0.0; state.tower.params.num_parameters];
        state.tower.backward(&state.outputs, &d_logits, &d_values, &mut gradient);
        Ok((None, Some(Tensor::from_vec(gradient, parameters.shape(), grad.device())?)))
    }
}
