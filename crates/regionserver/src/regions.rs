//! The online regions of this server, by encoded name.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use cell::region::{ServerName, encoded_bytes_of};
use engine::Region;
use proto::exception::{Answer, JavaException, class};

use crate::orders::NO_ORDER;

/// Maximum number of closed regions whose new server is remembered. Clients locate other regions in
/// `hbase:meta`.
const MOVED_MAX: usize = 10_000;

type Online = HashMap<Encoded, Arc<Region>, BuildHasherDefault<DigitsHasher>>;

/// An encoded region name as a map key, which can be looked up by its bytes.
#[derive(Clone, PartialEq, Eq)]
struct Encoded(Arc<str>);

impl Borrow<[u8]> for Encoded {
    fn borrow(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Hash for Encoded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_bytes().hash(state);
    }
}

/// Hashes encoded names. They are digits of an MD5 hash, so a cheap mix of some of the digits is a
/// good hash, too. (Clients cannot choose region names that have many of these digits in common,
/// and a lookup of an unknown name inserts nothing.)
#[derive(Default)]
struct DigitsHasher(u64);

impl Hasher for DigitsHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (whole, rest) = bytes.as_chunks::<8>();
        // The first 16 of 32 digits; in ASCII hex digits, four bits of each byte hardly vary.
        for digits in whole.iter().take(2) {
            self.mix(u64::from_le_bytes(*digits));
        }
        if whole.len() < 2 {
            rest.iter().for_each(|byte| self.mix(u64::from(*byte)));
        }
    }

    // Ignored: nearly all names have the same length.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

impl DigitsHasher {
    fn mix(&mut self, digits: u64) {
        // Knuth's multiplicative hash constant, from the golden ratio.
        self.0 = (self.0.rotate_left(23) ^ digits).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// What an order to open a region has to do.
pub enum OpeningStep {
    /// Open the region.
    Open,
    /// Nothing: a task that opens the region also answers this order.
    Joined,
    /// Only answer: the region is online.
    Online(Arc<Region>),
    /// Nothing: the server stops.
    Stopping,
}

/// The online regions. Readers use a map that is replaced as a whole, without a lock.
#[derive(Default)]
pub struct OnlineRegions {
    online: ArcSwap<Online>,
    // The lock also guards the replacement of `online`.
    offline: Mutex<Offline>,
}

/// What is known about regions that are not online. All names are encoded names.
#[derive(Default)]
struct Offline {
    // With the number of the newest order that the opening answers.
    opening: HashMap<String, i64>,
    closing: HashMap<String, Arc<Region>>,
    // The server that opens a region which was closed here, and the region's open sequence id here.
    moved: HashMap<String, (ServerName, u64)>,
    // Whether the server stops, so that it closes all regions by itself.
    stopping: bool,
    // Whether the stop has closed all regions and logs.
    stopped: bool,
}

impl OnlineRegions {
    /// Finds a region by its full or its encoded name.
    ///
    /// # Errors
    /// `RegionOpeningException` while it is being opened here, else `NotServingRegionException`.
    pub fn find(&self, name: &[u8]) -> Answer<Arc<Region>> {
        let encoded = encoded_bytes_of(name);
        if let Some(region) = encoded.and_then(|encoded| self.online.load().get(encoded).cloned()) {
            return Ok(region);
        }
        let shown = name.escape_ascii();
        let encoded = encoded.and_then(|encoded| std::str::from_utf8(encoded).ok());
        let offline = self.lock();
        if encoded.is_some_and(|encoded| offline.opening.contains_key(encoded)) {
            let message = format!("Region {shown} is opening on this server");
            return Err(JavaException::new(class::REGION_OPENING, message));
        }
        if let Some((server, seq_num)) = encoded.and_then(|encoded| offline.moved.get(encoded)) {
            return Err(JavaException::region_moved(server, i64::try_from(*seq_num).unwrap_or(i64::MAX)));
        }
        Err(JavaException::new(class::NOT_SERVING_REGION, format!("{shown} is not online on this server")))
    }

    /// Finds a region by its encoded name.
    pub fn get(&self, encoded: &str) -> Option<Arc<Region>> {
        self.online.load().get(encoded.as_bytes()).cloned()
    }

    /// Finds a region by its [number](Region::number) with a linear search.
    pub(crate) fn by_number(&self, number: NonZeroU64) -> Option<Arc<Region>> {
        self.online.load().values().find(|region| region.number() == number).cloned()
    }

    /// All regions, sorted by table and start key.
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

    /// All regions, in arbitrary order.
    pub(crate) fn unsorted(&self) -> Vec<Arc<Region>> {
        self.online.load().values().cloned().collect()
    }

    /// The number of online regions.
    pub fn len(&self) -> usize {
        self.online.load().len()
    }

    /// Whether no region is online.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Begins the stop of the server. From now on no region is opened, and only the stop closes
    /// regions. Otherwise a region could be opened again while the stop still writes its edits.
    pub(crate) fn begin_stop(&self) {
        self.lock().stopping = true;
    }

    /// Records that the stop has closed all regions and logs.
    pub(crate) fn end_stop(&self) {
        self.lock().stopped = true;
    }

    /// Whether the stop has closed all regions and logs.
    pub(crate) fn has_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Whether the server stops.
    pub(crate) fn is_stopping(&self) -> bool {
        self.lock().stopping
    }

    /// Whether a region is being closed, except by the stop of the server.
    pub(crate) fn is_any_closing(&self) -> bool {
        !self.lock().closing.is_empty()
    }

    /// The regions that are being closed, except by the stop of the server.
    pub(crate) fn closing(&self) -> Vec<Arc<Region>> {
        self.lock().closing.values().cloned().collect()
    }

    /// Records that order `id` opens a region, unless it is online or the server stops.
    pub fn begin_opening(&self, encoded: &str, id: i64) -> OpeningStep {
        let mut offline = self.lock();
        debug_assert!(!offline.closing.contains_key(encoded), "a region is opened after it was closed");
        if offline.stopping {
            return OpeningStep::Stopping;
        }
        if let Some(region) = self.get(encoded) {
            return OpeningStep::Online(region);
        }
        match offline.opening.get_mut(encoded) {
            Some(newest) => {
                *newest = id.max(*newest);
                OpeningStep::Joined
            }
            None => {
                offline.opening.insert(encoded.to_string(), id);
                OpeningStep::Open
            }
        }
    }

    /// Whether a region is being opened.
    pub fn is_opening(&self, encoded: &str) -> bool {
        self.lock().opening.contains_key(encoded)
    }

    /// Whether a region is being closed.
    pub fn is_closing(&self, encoded: &str) -> bool {
        self.lock().closing.contains_key(encoded)
    }

    /// Records that opening a region has failed. Returns the number of the newest order that this
    /// answers. An order that comes later opens the region again.
    pub fn cancel_opening(&self, encoded: &str) -> i64 {
        let answered = self.lock().opening.remove(encoded);
        debug_assert!(answered.is_some(), "an opening is recorded until it succeeds or fails");
        answered.unwrap_or(NO_ORDER)
    }

    /// Puts an opened region online. Returns the number of the newest order that this answers;
    /// `None` if the server stops, and then the region is not online.
    pub fn insert(&self, region: Arc<Region>) -> Option<i64> {
        let mut offline = self.lock();
        let answered = offline.opening.remove(&**region.encoded_name());
        if offline.stopping {
            return None;
        }
        offline.moved.remove(&**region.encoded_name());
        let mut online = Online::clone(&self.online.load());
        let earlier = online.insert(Encoded(region.encoded_name().clone()), region);
        debug_assert!(earlier.is_none(), "a region is online only once");
        self.online.store(Arc::new(online));
        Some(answered.unwrap_or(NO_ORDER))
    }

    /// Takes a region offline.
    pub fn remove(&self, encoded: &str) -> Option<Arc<Region>> {
        self.remove_from(&mut self.lock(), encoded)
    }

    /// Takes a region offline in order to close it. Clients are referred to `destination`, if it is
    /// known. [`OnlineRegions::end_closing`] must follow if the region was online. `None` if it was
    /// not, or if the server stops.
    pub fn begin_closing(&self, encoded: &str, destination: Option<&ServerName>) -> Option<Arc<Region>> {
        let mut offline = self.lock();
        if offline.stopping {
            return None;
        }
        let region = self.remove_from(&mut offline, encoded)?;
        offline.closing.insert(encoded.to_string(), region.clone());
        if let Some(server) = destination {
            if offline.moved.len() >= MOVED_MAX {
                offline.moved.clear();
            }
            offline.moved.insert(encoded.to_string(), (server.clone(), region.open_seq_id()));
        }
        Some(region)
    }

    /// Records that a region has been closed.
    pub fn end_closing(&self, encoded: &str) {
        let was_closing = self.lock().closing.remove(encoded);
        debug_assert!(was_closing.is_some(), "a close is recorded from its begin to its end");
    }

    fn remove_from(&self, _guard: &mut Offline, encoded: &str) -> Option<Arc<Region>> {
        let mut online = Online::clone(&self.online.load());
        let removed = online.remove(encoded.as_bytes());
        self.online.store(Arc::new(online));
        removed
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Offline> {
        self.offline.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_outcome_of_an_opening_answers_the_orders_that_came_before_it() {
        let regions = OnlineRegions::default();
        assert!(matches!(regions.begin_opening("r", 5), OpeningStep::Open));
        assert!(matches!(regions.begin_opening("r", 7), OpeningStep::Joined));
        assert_eq!(regions.cancel_opening("r"), 7);
        // The region is opened again, and has an answer of its own.
        assert!(matches!(regions.begin_opening("r", 8), OpeningStep::Open));
        assert_eq!(regions.cancel_opening("r"), 8);
        regions.begin_stop();
        assert!(matches!(regions.begin_opening("r", 9), OpeningStep::Stopping));
    }

    fn hash(name: &str) -> u64 {
        let mut hasher = DigitsHasher::default();
        Encoded(name.into()).hash(&mut hasher);
        let encoded = hasher.finish();
        let mut hasher = DigitsHasher::default();
        name.as_bytes().hash(&mut hasher);
        assert_eq!(hasher.finish(), encoded, "same hash as the bytes of a lookup");
        encoded
    }

    #[test]
    fn names_are_spread_over_the_map() {
        // Encoded names are MD5 digits.
        let names = (0..10_000u64).map(|at| {
            cell::region::RegionInfo::new(
                cell::schema::TableName::parse("t").unwrap(),
                at.to_be_bytes().to_vec().into(),
                "".into(),
                1,
            )
        });
        let hashes: Vec<u64> = names.map(|info| hash(&info.encoded_name())).collect();
        // Hash maps use the lowest bits for the bucket, and the highest seven for the tag.
        for of in [|hash: u64| hash & 0x3fff, |hash: u64| hash >> 50] {
            let places: HashSet<u64> = hashes.iter().map(|hash| of(*hash)).collect();
            // 10,000 random values occupy 7,484 of 16,384 buckets.
            assert!((7_300..7_700).contains(&places.len()), "{}", places.len());
        }
        assert_ne!(hash("1588230740"), hash("1588230741"));
    }
}
