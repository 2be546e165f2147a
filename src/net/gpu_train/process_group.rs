//! The communicator of devices that train together.

use super::constants::NUM_SYNCED;
use super::layers::TrainLayers;
use crate::device::Device;
use crate::device::collective::{Collective, DataType};
use crate::error::Result;
use std::cell::RefCell;
use std::sync::Arc;

/// A device's rank in the group.
pub struct ProcessGroup<D: Device> {
    /// Sums over all devices.
    pub sums: Arc<dyn Collective<D>>,
    /// Statistics of the columns of one normalisation, exchanged between devices. `[devices, 3, width]`
    pub statistics: RefCell<D::Buffer>,
}

impl<D: Device> ProcessGroup<D> {
    /// Allocates the statistics of the widest normalisation on `device`.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new(device: &D, layers: &TrainLayers, sums: Arc<dyn Collective<D>>) -> Result<Self> {
        let widest = layers.norms().map(|norm| norm.width).max().unwrap_or(0);
        let statistics = device.alloc(8 * sums.size() * NUM_SYNCED * widest)?.into();
        Ok(Self { sums, statistics })
    }

    /// Sums the statistics of all devices for a normalisation of `width` columns.
    ///
    /// # Errors
    /// Those of the link.
    pub fn all_reduce(&self, device: &D, width: usize) -> Result<()> {
        let count = self.sums.size() * NUM_SYNCED * width;
        self.sums.all_reduce_sum(device, &mut self.statistics.borrow_mut(), DataType::F64, count)
    }

    /// A guard that aborts the sums of all devices if it is dropped armed, so that no device blocks on this one.
    pub fn guard_link(&self) -> LinkGuard<D> {
        LinkGuard(Some(self.sums.clone()))
    }
}

/// Aborts the all-reduce of all devices if it goes out of scope before [`LinkGuard::disarm`], in a panic too.
pub struct LinkGuard<D: Device>(Option<Arc<dyn Collective<D>>>);

impl<D: Device> LinkGuard<D> {
    /// The link stays: this device's part of the update succeeded.
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl<D: Device> Drop for LinkGuard<D> {
    fn drop(&mut self) {
        if let Some(sums) = &self.0 {
            sums.abort();
        }
    }
}
