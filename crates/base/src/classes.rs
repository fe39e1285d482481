//! HBase's classes that options and table attributes select by name.
//!
//! Every such class is declared here once. The layers above use the enums, and never see a class
//! name.

/// Declares an enum of classes in one package of HBase.
macro_rules! classes {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident in $package:literal {
            $($(#[doc = $variant_doc:literal])+ $variant:ident = $class:literal;)+
        }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[doc = $variant_doc])+ $variant,)+
        }

        impl $name {
            /// The classes with their package, in the order of the variants.
            pub const CLASSES: &[&str] = &[$(concat!($package, ".", $class)),+];

            /// The variant of a class, which is given with its package.
            pub fn of_class(class: &str) -> Option<$name> {
                let name = class.strip_prefix(concat!($package, "."))?;
                match name {
                    $($class => Some($name::$variant),)+
                    _ => None,
                }
            }

            /// The variant of a class, which is given with or without its package.
            pub fn of_class_or_name(class: &str) -> Option<$name> {
                $name::of_class(class).or_else(|| $name::of_class(&format!("{}.{class}", $package)))
            }

            /// The class with its package.
            pub const fn class(self) -> &'static str {
                $name::CLASSES[self as usize]
            }
        }
    )+};
}

classes! {
    /// Decides when a region is split.
    SplitPolicy in "org.apache.hadoop.hbase.regionserver" {
        /// As `IncreasingToUpperBound`. HBase also considers the load, Grampus only the size.
        Busy = "BusyRegionSplitPolicy";
        /// At a constant size.
        ConstantSize = "ConstantSizeRegionSplitPolicy";
        /// As `IncreasingToUpperBound`, at a row that ends before a delimiter.
        DelimitedKeyPrefix = "DelimitedKeyPrefixRegionSplitPolicy";
        /// Never.
        Disabled = "DisabledRegionSplitPolicy";
        /// At a size that grows with the number of the table's regions on the server.
        IncreasingToUpperBound = "IncreasingToUpperBoundRegionSplitPolicy";
        /// As `IncreasingToUpperBound`, at a row of a fixed length.
        KeyPrefix = "KeyPrefixRegionSplitPolicy";
        /// The first region of a table on a server early, others at a constant size.
        Stepping = "SteppingSplitPolicy";
    }
    /// Organizes the files of a store.
    StoreEngine in "org.apache.hadoop.hbase.regionserver" {
        /// Compacts by a [`CompactionPolicy`].
        Default = "DefaultStoreEngine";
        /// Compacts within time windows.
        DateTiered = "DateTieredStoreEngine";
    }
    /// Selects the files of a minor compaction.
    CompactionPolicy in "org.apache.hadoop.hbase.regionserver.compactions" {
        /// The selection that removes the most files for the fewest bytes.
        Exploring = "ExploringCompactionPolicy";
        /// From the oldest file that is not much larger than all newer files together.
        RatioBased = "RatioBasedCompactionPolicy";
        /// Only files whose cells have all expired.
        Fifo = "FIFOCompactionPolicy";
    }
    /// Decides when a flush writes which families.
    FlushPolicy in "org.apache.hadoop.hbase.regionserver" {
        /// All families of a region.
        AllStores = "FlushAllStoresPolicy";
        /// The large families.
        AllLargeStores = "FlushAllLargeStoresPolicy";
        /// Families that are not compacted in memory first.
        NonSloppyStoresFirst = "FlushNonSloppyStoresFirstPolicy";
    }
    /// Limits the rate of a quota.
    RateLimiter in "org.apache.hadoop.hbase.quotas" {
        /// Refills continuously.
        Average = "AverageIntervalRateLimiter";
        /// Refills at the start of each interval.
        Fixed = "FixedIntervalRateLimiter";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_found_with_its_package_and_a_name_without() {
        assert_eq!(SplitPolicy::of_class(SplitPolicy::Stepping.class()), Some(SplitPolicy::Stepping));
        assert_eq!(SplitPolicy::of_class("SteppingSplitPolicy"), None);
        assert_eq!(SplitPolicy::of_class_or_name("SteppingSplitPolicy"), Some(SplitPolicy::Stepping));
        assert_eq!(
            CompactionPolicy::of_class(
                "org.apache.hadoop.hbase.regionserver.compactions.FIFOCompactionPolicy"
            ),
            Some(CompactionPolicy::Fifo)
        );
        assert_eq!(StoreEngine::of_class_or_name("com.example.DefaultStoreEngine"), None);
        assert_eq!(RateLimiter::of_class_or_name("OtherRateLimiter"), None);
    }
}
