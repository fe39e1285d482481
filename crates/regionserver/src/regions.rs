//! The regions that are served here, by encoded name.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use cell::region::encoded_name_of;
use engine::Region;
use wire::exception::{Answer, JavaException, class};

/// The regions online. Requests read a map that is replaced as a whole, without a lock.
#[derive(Default)]
pub struct OnlineRegions {
    online: ArcSwap<HashMap<Arc<str>, Arc<Region>>>,
    // Guards replacing the map; holds the regions that are on their way in.
    opening: Mutex<HashSet<String>>,
}

impl OnlineRegions {
    /// The region that a request names, by its full or its encoded name.
    ///
    /// # Errors
    /// `RegionOpeningException` while it is being opened here, else `NotServingRegionException`.
    pub fn find(&self, name: &[u8]) -> Answer<Arc<Region>> {
        let encoded = encoded_name_of(name);
        if let Some(region) = encoded.and_then(|encoded| self.get(encoded)) {
            return Ok(region);
        }
        let shown = name.escape_ascii();
        if encoded.is_some_and(|encoded| self.lock().contains(encoded)) {
            let message = format!("Region {shown} is opening on this server");
            return Err(JavaException::new(class::REGION_OPENING, message));
        }
        Err(JavaException::new(class::NOT_SERVING_REGION, format!("{shown} is not online on this server")))
    }

    /// The region of an encoded name.
    pub fn get(&self, encoded: &str) -> Option<Arc<Region>> {
        self.online.load().get(encoded).cloned()
    }

    /// The region of a [number](Region::number). Looks at all of them.
    pub(crate) fn numbered(&self, number: NonZeroU64) -> Option<Arc<Region>> {
        self.online.load().values().find(|region| region.number() == number).cloned()
    }

    /// All regions, by table and start key.
    pub fn all(&self) -> Vec<Arc<Region>> {
        let sorted: BTreeMap<_, _> = self
            .online
            .load()
            .values()
            .map(|region| {
                let info = region.info();
                ((info.table.clone(), info.start_key.clone(), info.region_id), region.clone())
            })
            .collect();
        sorted.into_values().collect()
    }

    /// All regions, in no order.
    pub(crate) fn unsorted(&self) -> Vec<Arc<Region>> {
        self.online.load().values().cloned().collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.online.load().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes that a region is on its way in; false if it is already, or online.
    pub fn begin_opening(&self, encoded: &str) -> bool {
        let mut opening = self.lock();
        self.get(encoded).is_none() && opening.insert(encoded.to_string())
    }

    /// The opening of a region has failed.
    pub fn cancel_opening(&self, encoded: &str) {
        self.lock().remove(encoded);
    }

    /// Puts an opened region online.
    pub fn insert(&self, region: Arc<Region>) {
        let mut opening = self.lock();
        opening.remove(&**region.encoded_name());
        let mut online = HashMap::clone(&self.online.load());
        online.insert(region.encoded_name().clone(), region);
        self.online.store(Arc::new(online));
    }

    /// Takes a region offline.
    pub fn remove(&self, encoded: &str) -> Option<Arc<Region>> {
        let _guard = self.lock();
        let mut online = HashMap::clone(&self.online.load());
        let removed = online.remove(encoded);
        self.online.store(Arc::new(online));
        removed
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.opening.lock().expect("no holder of this lock panics")
    }
}
