//! Where log lines go: to the journal, to a file that is renamed when it is full, or to standard
//! error.

use std::fmt;
use std::io::IsTerminal;
use std::sync::Mutex;

use base::config::Config;
use console::LogLineCounter;
use os::{LogFile, service_manager};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt as lines};

/// Starts logging. The level is that of `GRAMPUS_LOG`, by default `info`.
///
/// # Errors
/// One line that states why the log file cannot be opened.
pub(crate) fn start(config: &Config) -> Result<(), String> {
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match &config.log_file {
        Some(path) => {
            let file = LogFile::open(path, config.log_file_bytes_max, config.log_files_max);
            let file = file.map_err(|error| {
                format!("cannot open the log file {} (grampus.log.file): {error}", path.display())
            })?;
            Box::new(lines::layer().with_writer(Mutex::new(file)).with_ansi(false).with_target(false))
        }
        None if service_manager::logs_to_journal() => {
            let layer = lines::layer().with_writer(std::io::stderr).with_ansi(false);
            Box::new(layer.event_format(JournalLine::new()))
        }
        None => {
            let is_terminal = std::io::stderr().is_terminal();
            let layer = lines::layer().with_writer(std::io::stderr);
            Box::new(layer.with_ansi(is_terminal).with_target(false))
        }
    };
    let filter = EnvFilter::try_from_env("GRAMPUS_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::registry().with(lines).with(filter).with(LogLineCounter).init();
    Ok(())
}

/// Prints the reason why the process ends to standard error, in the journal as an error.
pub(crate) fn print_fatal(message: &str) {
    let prefix = if service_manager::logs_to_journal() { "<3>" } else { "" };
    eprintln!("{prefix}grampus: {message}");
}

/// A line for the journal: its priority, as `<N>`, and the message. The journal adds the time.
struct JournalLine(Format<Full, ()>);

impl JournalLine {
    fn new() -> JournalLine {
        JournalLine(Format::default().without_time().with_level(false).with_target(false).with_ansi(false))
    }
}

impl<S, N> FormatEvent<S, N> for JournalLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        write!(writer, "<{}>", priority(*event.metadata().level()))?;
        self.0.format_event(context, writer, event)
    }
}

/// Source: sd-daemon(3), `SD_ERR` to `SD_DEBUG`.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_for_the_journal_has_its_priority_and_no_time() {
        let written = Written::default();
        let writer = written.clone();
        let layer = lines::layer().with_writer(move || writer.clone()).with_ansi(false);
        let subscriber = tracing_subscriber::registry().with(layer.event_format(JournalLine::new()));
        tracing::subscriber::with_default(subscriber, || {
            tracing::error!("the disk failed");
            tracing::warn!(region = "r", "slow");
            tracing::info!("opened");
            tracing::debug!("details");
        });
        let lines = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert_eq!(lines, "<3>the disk failed\n<4>slow region=\"r\"\n<6>opened\n<7>details\n");
    }
}
