//! The training step on a device: forward, losses, backward and optimiser as kernels (`kernels/train.cu`), for every network. The
//! passes of [`crate::net::cpu_train`] and the losses and optimiser of [`super`] are the truth.
//!
//! Parameters, moments and statistics are 32-bit floats and stay on the device; activations, their gradients and the weights
//! that products read are in `train.precision`. Sums have a fixed order: a step is a function of the trainer's state and the
//! batch alone, to the bit, for one device and precision, and for as many of them as there are.
//!
//! Several devices of one machine train one network (`replica.rs`): each batch is split over them row by row, as evenly as it can
//! be, and every sample counts alike, whatever the size of its share. Normalisation is that of the whole batch.

#[cfg(test)]
mod generated;
mod device_trainer; // a network in training
mod replica; // one device of those that train
mod samples; // samples on a device
mod step; // an update's numbers

pub use device_trainer::DeviceTrainer;
pub use samples::{DeviceReplay, Residence};
pub use step::{LossScale, UpdateReport};
