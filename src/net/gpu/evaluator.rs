//! The network's own kernels for callers on the host: observations are copied to the device, logits and values back. A backend on the
//! same device takes the weights instead and copies nothing.

use super::double_buffer::DoubleBufferedForward;
use super::network::{DeviceNetwork, ObsFormat, Slots};
use super::{Arithmetic, DeviceForward};
use crate::config::Devices;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::net::double_buffer::ObsBuffer;
use crate::net::{DoubleBufferedNetwork, IoShape, Network, NetworkDesc};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of boards of one forward.
const MAX_SLOTS: usize = 4096;

/// Opens the device at the first forward.
type Opener<D> = dyn Fn() -> Result<D> + Send + Sync;

/// A network on a device as [`Network`]. It opens, compiles and copies nothing before the first forward. Forks share one device
/// and its arrays, which a lock guards.
pub struct DeviceEvaluator<D: Device> {
    parts: Arc<NetworkDesc>,
    devices: Devices,
    open: Arc<Opener<D>>,
    shared: Arc<Mutex<Option<Open<D>>>>,
}

/// The device, once there is one.
struct Open<D: Device> {
    device: D,
    arrays: Option<EvaluatorArrays<D>>,
}

/// The network for a number of slots, with its input and output.
struct EvaluatorArrays<D: Device> {
    forward: DeviceForward<D>,
    slots: usize,
    obs: D::Buffer,
    logits: D::Buffer,
    values: D::Buffer,
}

impl<D: Device> DeviceEvaluator<D> {
    /// The network of `parts` on the first of `devices`, which `open` opens at the first forward. Backends on any of them may take
    /// its weights.
    pub fn new(
        parts: NetworkDesc,
        devices: impl Into<Devices>,
        open: impl Fn() -> Result<D> + Send + Sync + 'static,
    ) -> Self {
        Self { parts: Arc::new(parts), devices: devices.into(), open: Arc::new(open), shared: Arc::default() }
    }
}

impl<D: Device> EvaluatorArrays<D> {
    fn new(device: &D, parts: &NetworkDesc, slots: usize) -> Result<Self> {
        let arithmetic = Arithmetic::of(parts.precision, parts.tensor_cores, device.limits()?.capability)?;
        let IoShape { obs_len, num_actions, num_players } = parts.spec.io();
        Ok(Self {
            forward: DeviceForward::new(device, &parts.spec, &parts.weights, arithmetic, slots)?,
            slots,
            obs: device.alloc(4 * slots * obs_len)?,
            logits: device.alloc(4 * slots * num_actions)?,
            values: device.alloc(4 * slots * num_players)?,
        })
    }

    /// Evaluates at most as many boards as there are slots.
    fn evaluate(
        &mut self,
        device: &D,
        boards: usize,
        obs: &[f32],
        (logits, values): (&mut [f32], &mut [f32]),
    ) -> Result<()> {
        match self.forward.format() {
            ObsFormat::F32 => device.upload(&mut self.obs, 0, bytemuck::cast_slice(obs))?,
            ObsFormat::Bf16 => {
                let mut bf16 = vec![0; obs.len()];
                ObsBuffer::Bf16(&mut bf16).fill(obs);
                device.upload(&mut self.obs, 0, bytemuck::cast_slice(&bf16[..]))?;
            }
        }
        let Self { forward, slots, obs, logits: all_logits, values: all_values } = self;
        forward.forward_first(
            device,
            Slots { num: *slots, live: None, obs, logits: all_logits, values: all_values },
            boards,
        )?;
        device.download(all_logits, 0, bytemuck::cast_slice_mut(logits))?;
        device.download(all_values, 0, bytemuck::cast_slice_mut(values))
    }
}

impl<D: Device> Open<D> {
    /// The network for at least `wanted` slots, or for `MAX_SLOTS`.
    fn arrays(&mut self, parts: &NetworkDesc, wanted: usize) -> Result<(&D, &mut EvaluatorArrays<D>)> {
        let slots = wanted.next_power_of_two().min(MAX_SLOTS);
        let Self { device, arrays } = self;
        if arrays.as_ref().is_none_or(|there| there.slots < slots) {
            *arrays = None; // its memory first
        }
        let there = match arrays.take() {
            Some(there) => there,
            None => EvaluatorArrays::new(device, parts, slots)?,
        };
        Ok((device, arrays.insert(there)))
    }
}

impl<D: Device + 'static> Network for DeviceEvaluator<D> {
    fn shape(&self) -> IoShape {
        self.parts.spec.io()
    }

    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        let IoShape { obs_len, num_actions, num_players } = self.shape();
        if obs.is_empty() {
            return Ok(());
        }
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match shared.take() {
            Some(open) => shared.insert(open),
            None => shared.insert(Open { device: (self.open)()?, arrays: None }),
        };
        let (device, arrays) = open.arrays(&self.parts, obs.len() / obs_len)?;
        let slots = arrays.slots;
        let outputs = logits.chunks_mut(slots * num_actions).zip(values.chunks_mut(slots * num_players));
        for (obs, outputs) in obs.chunks(slots * obs_len).zip(outputs) {
            arrays.evaluate(device, obs.len() / obs_len, obs, outputs)?;
        }
        let outputs = [("a logit of the network", &*logits), ("a value of the network", &*values)];
        for (what, numbers) in outputs {
            if let Some(&value) = numbers.iter().find(|x| !x.is_finite()) {
                return Err(Error::NotFinite { what: what.into(), value });
            }
        }
        Ok(())
    }

    fn double_buffered(&self, max_leaves: usize) -> Result<Option<Box<dyn DoubleBufferedNetwork>>> {
        let open = || (self.open)();
        Ok(Some(Box::new(DoubleBufferedForward::new(&self.parts, max_leaves, open)?)))
    }

    fn gains_by_threads(&self) -> bool {
        false
    }

    fn network_desc_for(&self, devices: &Devices) -> Option<&NetworkDesc> {
        devices.all().iter().all(|device| self.devices.all().contains(device)).then_some(&*self.parts)
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(Self {
            parts: self.parts.clone(),
            devices: self.devices,
            open: self.open.clone(),
            shared: self.shared.clone(),
        })
    }
}
