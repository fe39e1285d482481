//! Macros that generate structs, documentation and sources from one declaration of each attribute.

/// Declares the event counters of a bean: a struct with one instrument per field.
///
/// ```
/// base::instruments! {
///     /// Counters of the log.
///     pub struct LogInstruments in "RegionServer,sub=WAL" {
///         /// Edits appended.
///         appends: Counter = "appendCount",
///         /// Bytes written.
///         written_bytes: Counter = "writtenBytes" in Bytes,
///         /// How long a sync took.
///         sync_time: Times = "SyncTime",
///     }
/// }
/// let log = LogInstruments::begin(std::time::Duration::ZERO);
/// log.written_bytes.add(100);
/// ```
///
/// The struct [`Declares`](crate::metrics::Declares) its attributes and is a
/// [`Source`](crate::metrics::Source) of them. Fields are [`Counter`](crate::metrics::Counter),
/// [`Histogram`](crate::metrics::Histogram), [`Times`](crate::metrics::Times),
/// [`Sizes`](crate::metrics::Sizes) or [`Meter`](crate::metrics::Meter).
#[macro_export]
macro_rules! instruments {
    (
        $(#[$about:meta])*
        $visibility:vis struct $struct:ident in $bean:literal {
            $( $(#[doc = $help:literal])+ $field:ident: $kind:ident = $name:literal $(in $unit:ident)?, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug)]
        $visibility struct $struct {
            $( $(#[doc = $help])+ pub $field: $crate::metrics::$kind, )*
        }

        impl $struct {
            /// Instruments without values; `now` is a time on the monotonic clock.
            pub fn begin(now: ::std::time::Duration) -> $struct {
                $struct { $( $field: $crate::metrics::Instrument::begin(now), )* }
            }
        }

        impl $crate::metrics::Declares for $struct {
            const DECLARED: &'static [$crate::metrics::Declared] = &[ $( $crate::metrics::Declared {
                bean: $bean,
                name: $name,
                kind: <$crate::metrics::$kind as $crate::metrics::Instrument>::KIND,
                unit: $crate::one_unit!($($unit)? or <$crate::metrics::$kind as $crate::metrics::Instrument>::KIND.unit()),
                help: ::std::concat!($($help),+).trim_ascii(),
            }, )* ];
        }

        impl $crate::metrics::Source for $struct {
            fn show(&self, scope: &mut $crate::metrics::Scope<'_>) {
                let mut declared = <$struct as $crate::metrics::Declares>::DECLARED.iter();
                $( $crate::metrics::Instrument::show(
                    &self.$field,
                    declared.next().expect("one declaration per field"),
                    scope,
                ); )*
            }

            fn roll(&self) {
                $( $crate::metrics::Instrument::roll(&self.$field); )*
            }
        }
    };
}

/// Declares current values of a bean: a struct with one value per field, filled for each read.
///
/// ```
/// base::current_values! {
///     /// Current state of a store.
///     pub struct StoreFigures in "RegionServer,sub=Server" {
///         /// Name of the server.
///         server: Tag = "serverName",
///         /// Number of files.
///         files: Gauge<u64> = "storeFileCount",
///         /// Rows written.
///         writes: Counted = "writeRequestCount",
///     }
/// }
/// ```
///
/// All fields must be filled, so no declared attribute can be forgotten. The struct
/// [`Declares`](crate::metrics::Declares) its attributes and is a
/// [`Source`](crate::metrics::Source) of them.
#[macro_export]
macro_rules! current_values {
    (
        $(#[$about:meta])*
        $visibility:vis struct $struct:ident in $bean:literal {
            $( $(#[doc = $help:literal])+ $field:ident: $kind:ident $(<$value:ty>)? = $name:literal $(in $unit:ident)?, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq)]
        $visibility struct $struct {
            $( $(#[doc = $help])+ pub $field: $crate::metrics::$kind $(<$value>)?, )*
        }

        impl $crate::metrics::Declares for $struct {
            const DECLARED: &'static [$crate::metrics::Declared] = &[ $( $crate::metrics::Declared {
                bean: $bean,
                name: $name,
                kind: <$crate::metrics::$kind $(<$value>)? as $crate::metrics::CurrentValue>::KIND,
                unit: $crate::one_unit!($($unit)? or $crate::metrics::Unit::Count),
                help: ::std::concat!($($help),+).trim_ascii(),
            }, )* ];
        }

        impl $crate::metrics::Source for $struct {
            fn show(&self, scope: &mut $crate::metrics::Scope<'_>) {
                let mut declared = <$struct as $crate::metrics::Declares>::DECLARED.iter();
                $( $crate::metrics::CurrentValue::show(
                    &self.$field,
                    declared.next().expect("one declaration per field"),
                    scope,
                ); )*
            }
        }
    };
}

/// Declares HBase attributes that have no meaning here: a struct without fields, which shows them
/// as 0.
///
/// ```
/// base::absent! {
///     /// There is no replication.
///     pub struct Replication in "RegionServer,sub=Replication" {
///         /// Edits sent to other clusters.
///         Counter = "source.shippedOps",
///     }
/// }
/// ```
///
/// Kinds are those of [`Kind`](crate::metrics::Kind). The struct
/// [`Declares`](crate::metrics::Declares) its attributes and is a
/// [`Source`](crate::metrics::Source) of them.
#[macro_export]
macro_rules! absent {
    (
        $(#[$about:meta])*
        $visibility:vis struct $struct:ident in $bean:literal {
            $( $(#[doc = $help:literal])+ $kind:ident = $name:literal $(in $unit:ident)?, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug)]
        $visibility struct $struct;

        impl $crate::metrics::Declares for $struct {
            const DECLARED: &'static [$crate::metrics::Declared] = &[ $( $crate::metrics::Declared {
                bean: $bean,
                name: $name,
                kind: $crate::metrics::Kind::$kind,
                unit: $crate::one_unit!($($unit)? or $crate::metrics::Kind::$kind.unit()),
                help: ::std::concat!($($help),+).trim_ascii(),
            }, )* ];
        }

        impl $crate::metrics::Source for $struct {
            fn show(&self, scope: &mut $crate::metrics::Scope<'_>) {
                let declared = <$struct as $crate::metrics::Declares>::DECLARED;
                declared.iter().for_each(|declared| $crate::metrics::show_absent(declared, scope));
            }
        }
    };
}

/// The given unit, or else the default.
#[doc(hidden)]
#[macro_export]
macro_rules! one_unit {
    (or $default:expr) => {
        $default
    };
    ($unit:ident or $default:expr) => {
        $crate::metrics::Unit::$unit
    };
}
