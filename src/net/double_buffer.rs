//! Networks with two alternating batches: a device evaluates one while the caller fills the other.

use super::number::bf16_bits;
use crate::device::kernel_times::KernelTime;
use crate::error::Result;

/// A buffer for the observations of some leaves, in the number format in which they are copied to the device.
#[derive(Debug)]
pub enum ObsBuffer<'a> {
    /// 32-bit floats. `[M, F]`
    F32(&'a mut [f32]),
    /// bf16 bit patterns, rounded to the nearest. `[M, F]`
    Bf16(&'a mut [u16]),
}

impl<'a> ObsBuffer<'a> {
    /// The first `len` elements of the buffer, and the rest.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn split_at(self, len: usize) -> (Self, Self) {
        match self {
            Self::F32(buffer) => {
                let (first, rest) = buffer.split_at_mut(len);
                (Self::F32(first), Self::F32(rest))
            }
            Self::Bf16(buffer) => {
                let (first, rest) = buffer.split_at_mut(len);
                (Self::Bf16(first), Self::Bf16(rest))
            }
        }
    }

    /// Fills the buffer with the observations that `write` writes. A bf16 buffer is converted from `scratch`, which has as many elements as
    /// the buffer.
    ///
    /// # Panics
    /// If the lengths of `scratch` and a bf16 buffer differ.
    pub fn fill_by(self, scratch: &mut [f32], write: impl FnOnce(&mut [f32])) {
        match self {
            Self::F32(buffer) => write(buffer),
            buffer @ Self::Bf16(_) => {
                write(scratch);
                buffer.fill(scratch);
            }
        }
    }

    /// Fills the buffer with `obs`, which has as many elements as the buffer.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn fill(self, obs: &[f32]) {
        match self {
            Self::F32(buffer) => buffer.copy_from_slice(obs),
            Self::Bf16(buffer) => {
                assert_eq!(buffer.len(), obs.len(), "observations have the length of the buffer");
                buffer.iter_mut().zip(obs).for_each(|(to, &x)| *to = bf16_bits(x) as u16);
            }
        }
    }
}

/// The outputs for one batch.
#[derive(Clone, Copy, Debug)]
pub struct NetOutputs<'a> {
    /// `[M, A]`
    pub logits: &'a [f32],
    /// `[M, P]`, in seats relative to the observer.
    pub values: &'a [f32],
}

/// A network with two batches, 0 and 1, of which one is evaluated while the other is filled. The batches alternate; the calls for each are
/// [`Self::input_buffer`], [`Self::start`], [`Self::finish`].
pub trait DoubleBufferedNetwork: Send {
    /// The buffer of the observations of `leaves` leaves of batch `batch`, which is not being evaluated. `[leaves, F]`
    ///
    /// # Errors
    /// Those of the device.
    fn input_buffer(&mut self, batch: usize, leaves: usize) -> Result<ObsBuffer<'_>>;

    /// Starts to evaluate a batch and returns.
    ///
    /// # Errors
    /// Those of the device.
    fn start(&mut self, batch: usize) -> Result<()>;

    /// Waits for the outputs of a batch that was started.
    ///
    /// # Errors
    /// [`crate::Error::NotFinite`] where an output is not a finite number, and those of the device.
    fn finish(&mut self, batch: usize) -> Result<NetOutputs<'_>>;

    /// Bytes copied so far between the host and the device of the network, both ways.
    fn copied(&self) -> u64;

    /// Starts to time every launch and every copy by itself, until [`Self::end_timing`]. No batch may be under evaluation.
    fn begin_timing(&mut self);

    /// The times of kernels and copies ([`crate::device::kernel_times::COPY_IN`], [`crate::device::kernel_times::COPY_OUT`]) of both batches, the
    /// longest first.
    ///
    /// # Errors
    /// Those of the device.
    fn end_timing(&mut self) -> Result<Vec<KernelTime>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observations_arrive_in_the_format_of_the_buffer() {
        let obs = [1.0, -2.5, 1.003_906_3, 3.0e38];
        let mut floats = [0.0; 4];
        let (first, rest) = ObsBuffer::F32(&mut floats).split_at(1);
        rest.fill(&obs[1..]);
        first.fill(&obs[..1]);
        assert_eq!(floats, obs);
        let mut bf16 = [0; 4];
        let (first, rest) = ObsBuffer::Bf16(&mut bf16).split_at(3);
        first.fill(&obs[..3]);
        rest.fill(&obs[3..]);
        assert_eq!(bf16, obs.map(|x| half::bf16::from_f32(x).to_bits()));
        let (mut floats_by, mut bf16_by) = ([0.0; 4], [0; 4]);
        for buffer in [ObsBuffer::F32(&mut floats_by), ObsBuffer::Bf16(&mut bf16_by)] {
            buffer.fill_by(&mut [7.0; 4], |numbers| numbers.copy_from_slice(&obs));
        }
        assert_eq!((floats_by, bf16_by), (floats, bf16));
    }
}
