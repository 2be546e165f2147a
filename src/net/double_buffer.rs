//! Networks that evaluate two batches in turn: while a device evaluates one, the caller fills the other.

use super::number::bf16_bits;
use crate::error::Result;
use crate::kernel_times::KernelTime;

/// Room for the observations of some leaves, in the number format in which they travel.
#[derive(Debug)]
pub enum ObsBuffer<'a> {
    /// 32-bit floats. `[M, F]`
    F32(&'a mut [f32]),
    /// Upper halves of 32-bit floats, rounded to the nearest. `[M, F]`
    Bf16(&'a mut [u16]),
}

impl<'a> ObsBuffer<'a> {
    /// The first `numbers` numbers of the buffer, and the rest.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn split_at(self, numbers: usize) -> (Self, Self) {
        match self {
            Self::F32(buffer) => {
                let (first, rest) = buffer.split_at_mut(numbers);
                (Self::F32(first), Self::F32(rest))
            }
            Self::Bf16(buffer) => {
                let (first, rest) = buffer.split_at_mut(numbers);
                (Self::Bf16(first), Self::Bf16(rest))
            }
        }
    }

    /// Has `write` fill the buffer, by way of `between` where the buffer's numbers are others; both have as many numbers.
    ///
    /// # Panics
    /// If `between` has fewer or more.
    pub fn fill_by(self, between: &mut [f32], write: impl FnOnce(&mut [f32])) {
        match self {
            Self::F32(buffer) => write(buffer),
            buffer @ Self::Bf16(_) => {
                write(between);
                buffer.fill(between);
            }
        }
    }

    /// Fills the buffer with `obs`, as many numbers as it has.
    ///
    /// # Panics
    /// If there are more or fewer.
    pub fn fill(self, obs: &[f32]) {
        match self {
            Self::F32(buffer) => buffer.copy_from_slice(obs),
            Self::Bf16(buffer) => {
                assert_eq!(buffer.len(), obs.len(), "as many numbers as there is buffer for");
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

/// A network with two batches, 0 and 1, of which one is evaluated while the other is made. For each batch in turn:
/// [`Self::input_buffer`], [`Self::start`], [`Self::finish`].
pub trait DoubleBufferedNetwork: Send {
    /// Room for the observations of `leaves` leaves of batch `batch`, which is not being evaluated. `[leaves, F]`
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

    /// Bytes copied to where the network is and back so far.
    fn copied(&self) -> u64;

    /// From here to [`Self::end_timing`] every launch and every copy is timed by itself. No batch is being evaluated.
    fn begin_timing(&mut self);

    /// What kernels and copies ([`crate::kernel_times::COPY_IN`], [`crate::kernel_times::COPY_OUT`]) of both batches took, the
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
    fn observations_arrive_in_the_format_of_the_room() {
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
