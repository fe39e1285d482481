//! The text of a model of a device.
//!
//! ```text
//! hdd
//! hdd,read=250MB/s,write=240MB/s,seek=8.5ms,slower=4
//! ```
//!
//! The first word names a device of [`fs::paced`]. The others change it.

use std::time::Duration;

use fs::paced::Device;

/// Longest time of a parameter. A disk is not slower, and its multiples do not overflow.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Largest factor of `slower`.
const SLOWER_MAX: f64 = 1e6;
/// Most requests that a device serves at a time.
const REQUESTS_MAX: usize = 65_536;

/// Parses a model.
///
/// # Errors
/// What is wrong, for the operator.
pub(crate) fn parse_model(text: &str) -> Result<Device, String> {
    let mut words = text.split(',');
    let name = words.next().unwrap_or_default();
    // The speeds and their source are those of `fs::paced`: the study "HDFS HSM and HBase" (Intel,
    // 2016), which measured 140 and 127 MB/s, and 6.7 ms, of a disk of 7200 rpm, and 481 and
    // 447 MB/s, and 80 us, of a SATA SSD.
    let mut device = match name {
        "hdd" => Device::hdd(),
        "ssd" => Device::ssd(),
        "ram" => Device::ram(),
        _ => return Err(format!("`{name}` is not a model of a device; the models are ram, ssd and hdd")),
    };
    let mut slower = 1.0;
    for word in words {
        let unknown = || {
            format!(
                "`{word}` of the model {name} is not known; known are read=140MB/s, write=127MB/s, seek=6.7ms, \
                 latency=80us, sync=6.7ms, requests=32 and slower=10"
            )
        };
        let (key, value) = word.split_once('=').ok_or_else(unknown)?;
        match key {
            "read" => device.read_bytes_per_s = parse_rate(value)?,
            "write" => device.write_bytes_per_s = parse_rate(value)?,
            "seek" => device.seek = parse_time(value)?,
            "latency" => device.call = parse_time(value)?,
            "sync" => device.sync = parse_time(value)?,
            "requests" => device.queue_depth = parse_requests(value)?,
            "slower" => slower = parse_slower(value)?,
            _ => return Err(unknown()),
        }
    }
    Ok(device.scaled(slower))
}

/// Parses bytes per second, such as `140MB/s` or `1.5GiB/s`.
///
/// # Errors
/// What is wrong, for the operator.
pub(crate) fn parse_rate(text: &str) -> Result<u64, String> {
    let factor = |unit: &str| match unit {
        "B/s" => Some(1.0),
        "kB/s" => Some(1e3),
        "MB/s" => Some(1e6),
        "GB/s" => Some(1e9),
        "KiB/s" => Some(1024.0),
        "MiB/s" => Some(1_048_576.0),
        "GiB/s" => Some(1_073_741_824.0),
        _ => None,
    };
    let rate = number_with_unit(text, factor).filter(|rate| (1.0..1e15).contains(rate));
    rate.map(|rate| rate.round() as u64).ok_or_else(|| {
        format!(
            "`{text}` is not a rate; write a positive number with kB/s, MB/s, GB/s, KiB/s, MiB/s or GiB/s, \
             such as 140MB/s"
        )
    })
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let factor = |unit: &str| match unit {
        "us" => Some(1e-6),
        "ms" => Some(1e-3),
        "s" => Some(1.0),
        _ => None,
    };
    let seconds = number_with_unit(text, factor).filter(|seconds| *seconds <= TIME_MAX.as_secs_f64());
    seconds.map(Duration::from_secs_f64).ok_or_else(|| {
        format!(
            "`{text}` is not a time of at most {TIME_MAX:?}; write a number with us, ms or s, such as 6.7ms"
        )
    })
}

fn parse_requests(text: &str) -> Result<usize, String> {
    let requests = text.parse().ok().filter(|requests| (1..=REQUESTS_MAX).contains(requests));
    requests.ok_or_else(|| format!("`{text}` is not a number of requests from 1 to {REQUESTS_MAX}"))
}

fn parse_slower(text: &str) -> Result<f64, String> {
    let factor = decimal(text).filter(|factor| (1.0..=SLOWER_MAX).contains(factor));
    factor.ok_or_else(|| format!("`{text}` is not a factor from 1 to {SLOWER_MAX}"))
}

/// The number times the factor of its unit; `None` for another text.
fn number_with_unit(text: &str, factor: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let end = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(end);
    Some(decimal(number)? * factor(unit)?)
}

/// A number without sign or exponent, so that neither infinity nor NaN is accepted.
fn decimal(text: &str) -> Option<f64> {
    let is_plain = text.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    text.parse().ok().filter(|number: &f64| is_plain && number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_published_device() {
        assert_eq!(parse_model("hdd"), Ok(Device::hdd()));
        assert_eq!(parse_model("ssd"), Ok(Device::ssd()));
        assert_eq!(parse_model("ram"), Ok(Device::ram()));
    }

    #[test]
    fn parameters_change_the_device() {
        let text = "hdd,read=250MB/s,write=0.5GiB/s,seek=8.5ms,latency=80us,sync=1s,requests=4";
        let changed = Device {
            read_bytes_per_s: 250_000_000,
            write_bytes_per_s: 512 << 20,
            seek: Duration::from_micros(8500),
            call: Duration::from_micros(80),
            sync: Duration::from_secs(1),
            queue_depth: 4,
            ..Device::hdd()
        };
        assert_eq!(parse_model(text), Ok(changed.clone()));
        // The factor applies to all times and rates, wherever it stands.
        assert_eq!(parse_model(&format!("{text},slower=2.5")), Ok(changed.clone().scaled(2.5)));
        let first = text.replace("hdd", "hdd,slower=2.5");
        assert_eq!(parse_model(&first), Ok(changed.scaled(2.5)));
    }

    #[test]
    fn errors_name_the_word() {
        for (text, expected) in [
            ("", "`` is not a model"),
            ("tape", "`tape` is not a model"),
            ("hdd,", "`` of the model hdd"),
            ("hdd,speed=1", "`speed=1` of the model hdd"),
            ("hdd,read=140", "`140` is not a rate"),
            ("hdd,read=140MB", "`140MB` is not a rate"),
            ("hdd,read=0MB/s", "`0MB/s` is not a rate"),
            ("hdd,read=-1MB/s", "`-1MB/s` is not a rate"),
            ("hdd,write=infMB/s", "`infMB/s` is not a rate"),
            ("hdd,write=1e99MB/s", "`1e99MB/s` is not a rate"),
            ("hdd,seek=7", "`7` is not a time"),
            ("hdd,seek=7min", "`7min` is not a time"),
            ("hdd,sync=61s", "`61s` is not a time"),
            ("hdd,requests=0", "`0` is not a number of requests"),
            ("hdd,slower=0.5", "`0.5` is not a factor"),
            ("hdd,slower=NaN", "`NaN` is not a factor"),
        ] {
            let error = parse_model(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
