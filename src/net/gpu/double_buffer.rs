//! The network's own kernels for two batches in turn: with games and trees on the CPU, the host searches one half of the games while
//! the device evaluates the other. Each batch has its stream, its arrays and pinned host memory, so that copies overlap with the
//! host's work.

use super::network::{DeviceNetwork, ObsFormat, Slots, all_finite};
use super::{Arithmetic, DeviceForward};
use crate::device::kernel_times::KernelTime;
use crate::device::{Device, Pinned};
use crate::error::{Error, Result};
use crate::net::double_buffer::{NetOutputs, ObsBuffer};
use crate::net::{DoubleBufferedNetwork, IoShape, NetworkDesc};

/// A network on a device for two batches.
pub(super) struct DoubleBufferedForward<D: Device> {
    batches: [BatchBuffers<D>; 2],
    io: IoShape,
}

/// One batch: its stream, and its arrays on the device and on the host.
struct BatchBuffers<D: Device> {
    device: D,
    forward: DeviceForward<D>,
    /// Maximum number of leaves.
    max_leaves: usize,
    /// M: leaves in the batch.
    leaves: usize,
    /// `[max_leaves, F]`
    obs: D::Buffer,
    /// `[max_leaves, A]`
    logits: D::Buffer,
    /// `[max_leaves, P]`
    values: D::Buffer,
    /// The same in pinned host memory.
    host: HostArrays<D::Pinned>,
}

struct HostArrays<P> {
    obs: P,
    logits: P,
    values: P,
    /// Not 0 once a logit or value was not finite. `[1]`
    not_finite: P,
}

impl<D: Device> DoubleBufferedForward<D> {
    /// The network of `parts` for batches of at most `max_leaves` leaves, each on a device that `open` opens.
    ///
    /// # Errors
    /// As [`DeviceForward::new`], and what `open` says.
    pub(super) fn new(parts: &NetworkDesc, max_leaves: usize, open: impl Fn() -> Result<D>) -> Result<Self> {
        Ok(Self {
            batches: [
                BatchBuffers::new(open()?, parts, max_leaves)?,
                BatchBuffers::new(open()?, parts, max_leaves)?,
            ],
            io: parts.spec.io(),
        })
    }
}

impl<D: Device> BatchBuffers<D> {
    fn new(device: D, parts: &NetworkDesc, max_leaves: usize) -> Result<Self> {
        let IoShape { obs_len, num_actions, num_players } = parts.spec.io();
        let arithmetic = Arithmetic::of(parts.precision, parts.tensor_cores, device.limits()?.capability)?;
        let forward = DeviceForward::new(&device, &parts.spec, &parts.weights, arithmetic, max_leaves)?;
        let obs = element_bytes(forward.format()) * max_leaves * obs_len;
        let [logits, values] = [4 * max_leaves * num_actions, 4 * max_leaves * num_players];
        Ok(Self {
            forward,
            max_leaves,
            leaves: 0,
            obs: device.alloc(obs)?,
            logits: device.alloc(logits)?,
            values: device.alloc(values)?,
            host: HostArrays {
                obs: device.pinned(obs)?,
                logits: device.pinned(logits)?,
                values: device.pinned(values)?,
                not_finite: device.pinned(4)?,
            },
            device,
        })
    }
}

/// Bytes of one element of an observation.
fn element_bytes(format: ObsFormat) -> usize {
    match format {
        ObsFormat::F32 => 4,
        ObsFormat::Bf16 => 2,
    }
}

impl<D: Device> DoubleBufferedNetwork for DoubleBufferedForward<D> {
    fn input_buffer(&mut self, batch: usize, leaves: usize) -> Result<ObsBuffer<'_>> {
        let batch = &mut self.batches[batch];
        if leaves > batch.max_leaves {
            return Err(Error::mismatch(
                "leaves of a batch",
                leaves,
                format_args!("at most {}", batch.max_leaves),
            ));
        }
        batch.leaves = leaves;
        let format = batch.forward.format();
        let bytes = &mut batch.host.obs.bytes_mut()?[..element_bytes(format) * leaves * self.io.obs_len];
        Ok(match format {
            ObsFormat::F32 => ObsBuffer::F32(bytemuck::cast_slice_mut(bytes)),
            ObsFormat::Bf16 => ObsBuffer::Bf16(bytemuck::cast_slice_mut(bytes)),
        })
    }

    fn start(&mut self, batch: usize) -> Result<()> {
        let IoShape { obs_len, num_actions, num_players } = self.io;
        let BatchBuffers { device, forward, max_leaves, leaves, obs, logits, values, host } =
            &mut self.batches[batch];
        device.start_upload(obs, &mut host.obs, element_bytes(forward.format()) * *leaves * obs_len)?;
        forward.forward_first(
            device,
            Slots { num: *max_leaves, live: None, obs, logits, values },
            *leaves,
        )?;
        device.start_download(logits, &mut host.logits, 4 * *leaves * num_actions)?;
        device.start_download(values, &mut host.values, 4 * *leaves * num_players)?;
        device.start_download(&forward.work.not_finite, &mut host.not_finite, 4)
    }

    fn finish(&mut self, batch: usize) -> Result<NetOutputs<'_>> {
        let IoShape { num_actions, num_players, .. } = self.io;
        let BatchBuffers { device, host, leaves, .. } = &self.batches[batch];
        device.synchronise()?;
        all_finite(bytemuck::pod_read_unaligned(&host.not_finite.bytes()?[..4]))?;
        Ok(NetOutputs {
            logits: &bytemuck::cast_slice(host.logits.bytes()?)[..leaves * num_actions],
            values: &bytemuck::cast_slice(host.values.bytes()?)[..leaves * num_players],
        })
    }

    fn copied(&self) -> u64 {
        self.batches.iter().map(|batch| batch.device.copied()).sum()
    }

    fn begin_timing(&mut self) {
        self.batches.iter().for_each(|batch| batch.device.begin_timing());
    }

    fn end_timing(&mut self) -> Result<Vec<KernelTime>> {
        let [first, second] = &self.batches;
        Ok(KernelTime::together(first.device.end_timing()?.into_iter().chain(second.device.end_timing()?)))
    }
}
