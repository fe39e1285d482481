//! `grampus shell` with a server, both started as users do.
//!
//! The complete output is compared, with times replaced. The expectations are what HBase's shell
//! prints for the same commands.
#![allow(clippy::disallowed_methods, reason = "scripts of this test")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::Write;
use std::process::{Output, Stdio};

use common::{Server, TempDir, grampus, run, text};

/// Output with `T` for every recent timestamp and every duration. `timestamp=1970-..` is unchanged.
fn timeless(output: &[u8]) -> String {
    let mut shown = String::new();
    for line in text(output).lines() {
        let line = match line.split_once("timestamp=2") {
            Some((before, rest)) => {
                let behind = rest.find(',').map_or("", |at| &rest[at..]);
                format!("{before}timestamp=T{behind}")
            }
            None if line.starts_with("Took ") => {
                let seconds = line["Took ".len()..].strip_suffix(" seconds").expect("seconds");
                let (_, fraction) = seconds.split_once('.').expect("a fraction");
                assert!(seconds.parse::<f64>().is_ok() && fraction.len() == 4, "{line}");
                "Took T".to_string()
            }
            None => line.to_string(),
        };
        shown.push_str(&line);
        shown.push('\n');
    }
    shown
}

fn check(server: &Server, commands: &str, expected: &str) {
    let output = server.shell(commands);
    let shown = format!("{}{}", timeless(&output.stdout), text(&output.stderr));
    assert_eq!(shown, expected, "{commands}");
    assert!(output.status.success(), "{commands}");
}

/// Checks that the command fails with `message`, printed in HBase's format, and with exit code 1.
fn check_refused(server: &Server, command: &str, message: &str) {
    let output = server.shell(command);
    let shown = timeless(&output.stdout);
    assert!(shown.contains(&format!("\nERROR: {message}\n")), "{command}: {shown}");
    assert_eq!(output.status.code(), Some(1), "{command}: {shown}");
    let name = command.split(' ').next().unwrap();
    assert_eq!(text(&output.stderr), format!("grampus: command 1 of 1 failed: {name} in line 1\n"));
}

#[test]
fn a_row_is_written_and_read_and_the_server_stops() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    check(
        &server,
        "create 't','f'; put 't','r','f:q','v'; scan 't'",
        "Created table t\nTook T\nTook T\nROW  COLUMN+CELL\n r column=f:q, timestamp=T, value=v\n1 row(s)\nTook T\n",
    );
    let errors = server.errors();
    let status = server.stop();
    assert_eq!(status.code(), Some(0), "{errors}");

    let server = Server::start(&dir.join("data"));
    check(&server, "get 't', 'r'", "COLUMN  CELL\n f:q timestamp=T, value=v\n1 row(s)\nTook T\n");
    server.kill();
}

/// The state after a kill in the middle of a table's deletion: the files are archived, but the rows
/// in `hbase:meta` still exist.
#[test]
fn a_table_without_its_directory_does_not_affect_others() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    check(
        &server,
        "create 'gone','f'; disable 'gone'; create 't','f'; put 't','r','f:q','v'",
        "Created table gone\nTook T\nTook T\nCreated table t\nTook T\nTook T\n",
    );
    server.kill();
    std::fs::remove_dir_all(dir.join("data/data/default/gone")).unwrap();

    let server = Server::start(&dir.join("data"));
    assert!(server.errors().contains("no descriptor"), "{}", server.errors());
    check(&server, "get 't', 'r'", "COLUMN  CELL\n f:q timestamp=T, value=v\n1 row(s)\nTook T\n");
    check(&server, "drop 'gone'; create 'gone','f'", "Took T\nCreated table gone\nTook T\n");
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn commands_print_the_output_of_hbase() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    tables(&server);
    reads(&server);
    aggregates(&server);
    deletes(&server);
    counters(&server);
    refusals(&server);
    changes(&server);
    attributes(&server);
    procedures(&server);
    namespaces(&server);
    snapshots(&server);
    ways_in(&server);
    end_of_tables(&server);
    assert_eq!(server.stop().code(), Some(0));
}

fn changes(server: &Server) {
    check(
        server,
        "create 'a', {NAME => 'f', VERSIONS => 2}, 'g', SPLITS => ['m']; put 'a', 'r', 'f:q', 'v'; put 'a', 'z', 'g:q', 'w'",
        "Created table a\nTook T\nTook T\nTook T\n",
    );
    let done = "Updating all regions with the new schema...\n2/2 regions updated.\nDone.\nTook T\n";
    check(
        server,
        "alter 'a', {NAME => 'f', VERSIONS => 5}, {NAME => 'h'}, MAX_FILESIZE => 10737418240",
        done,
    );
    check(server, "alter 'a', 'delete' => 'g'", done);
    check(server, "alter_status 'a'", "2/2 regions updated.\nDone.\nTook T\n");
    let described = text(&server.shell("describe 'a'").stdout);
    assert!(described.contains("MAX_FILESIZE => '10737418240 B (10GB)'"), "{described}");
    assert!(
        described.contains("NAME => 'f', INDEX_BLOCK_ENCODING => 'NONE', VERSIONS => '5'"),
        "{described}"
    );
    assert!(described.contains("NAME => 'h'") && !described.contains("NAME => 'g'"), "{described}");
    check(
        server,
        "put 'a', 'r', 'h:q', 'x'; scan 'a'",
        "Took T\nROW  COLUMN+CELL\n r column=f:q, timestamp=T, value=v\n r column=h:q, timestamp=T, value=x\n\
         1 row(s)\nTook T\n",
    );
    let emptied =
        "Truncating 'a' table (it may take a while):\nDisabling table...\nTruncating table...\nTook T\n";
    check(server, "truncate_preserve 'a'", emptied);
    check(server, "scan 'a'", "ROW  COLUMN+CELL\n0 row(s)\nTook T\n");
    check(server, "alter_status 'a'", "2/2 regions updated.\nDone.\nTook T\n");
    check(server, "truncate 'a'", emptied);
    check(server, "alter_status 'a'", "1/1 regions updated.\nDone.\nTook T\n");
    check(server, "disable 'a'; drop 'a'", "Took T\nTook T\n");
}

/// An attribute either has an effect, or the user is informed that it has none.
fn attributes(server: &Server) {
    let made = "create 'k', {NAME => 'f', DFS_REPLICATION => 3}, {PRIORITY => 7}; describe 'k'";
    let described = text(&server.shell(made).stdout);
    let note = "Stored for compatibility, without effect: PRIORITY, DFS_REPLICATION (family 'f')";
    assert!(described.contains(note), "{described}");
    for (command, reason) in [
        ("alter 'k', {NAME => 'f', ENCRYPTION => 'AES'}", "ENCRYPTION => 'AES' of family f is not supported"),
        ("alter 'k', {NAME => 'f', DATA_BLOCK_ENCODING => 'NOPE'}", "expected NONE, PREFIX, DIFF, FAST_DIFF"),
        (
            "alter 'k', CONFIGURATION => {'hbase.hregion.majorcompaction' => 'x'}",
            "expected an integer of at least 0",
        ),
        ("alter 'k', CONFIGURATION => {'hbase.no.such.key' => 'x'}", "has no effect"),
        ("alter 'k', MERGE_ENABLED => 'maybe'", "expected true or false"),
    ] {
        let shown = text(&server.shell(command).stdout);
        assert!(shown.contains(reason), "{command}: {shown}");
    }
    check(server, "disable 'k'; drop 'k'", "Took T\nTook T\n");
}

fn procedures(server: &Server) {
    let listed = text(&server.shell("list_procedures").stdout);
    assert!(listed.starts_with("PID Name State Submitted Last_Update Parameters\n"), "{listed}");
    assert!(listed.contains(" DeleteTableProcedure SUCCESS "), "{listed}");
    check(server, "abort_procedure 1; abort_procedure 1, false", "false\nTook T\nfalse\nTook T\n");
    check(server, "snapshot_cleanup_enabled", "true\nTook T\n");
    check(
        server,
        "snapshot_cleanup_switch false; snapshot_cleanup_switch true",
        "true\nTook T\nfalse\nTook T\n",
    );
}

fn namespaces(server: &Server) {
    check(
        server,
        "create_namespace 'ns', {'k' => 'v'}; create 'ns:t', 'f'; list_namespace_tables 'ns'",
        "Took T\nCreated table ns:t\nTook T\nTABLE\nt\n1 row(s)\nTook T\n",
    );
    check(server, "list_namespace", "NAMESPACE\ndefault\nhbase\nns\n3 row(s)\nTook T\n");
    check(server, "list_namespace 'n.*'", "NAMESPACE\nns\n1 row(s)\nTook T\n");
    check(
        server,
        "alter_namespace 'ns', {METHOD => 'set', 'k' => 'w'}; describe_namespace 'ns'",
        "Took T\nDESCRIPTION\n{NAME => 'ns', k => 'w'}\nQuota is disabled\nTook T\n",
    );
    let refused = text(&server.shell("drop_namespace 'ns'").stdout);
    assert!(refused.contains("Only empty namespaces can be removed. Namespace ns has 1 tables"), "{refused}");
    check(server, "disable 'ns:t'; drop 'ns:t'; drop_namespace 'ns'", "Took T\nTook T\nTook T\n");
}

fn snapshots(server: &Server) {
    check(
        server,
        "create 's', 'f'; put 's', 'r', 'f:q', 'v'; snapshot 's', 'snap'; put 's', 'r', 'f:q', 'later'",
        "Created table s\nTook T\nTook T\nTook T\nTook T\n",
    );
    let listed = text(&server.shell("list_snapshots").stdout);
    assert!(listed.starts_with("SNAPSHOT  TABLE + CREATION TIME\n snap s (2"), "{listed}");
    assert!(listed.contains(" UTC)\n1 row(s)\n"), "{listed}");
    let row = "ROW  COLUMN+CELL\n r column=f:q, timestamp=T, value=v\n1 row(s)\nTook T\n";
    check(server, "clone_snapshot 'snap', 's2'; scan 's2'", &format!("Took T\n{row}"));
    check_refused(server, "clone_snapshot 'snap', 's2'", "Table already exists: s2!");
    check(
        server,
        "disable 's'; restore_snapshot 'snap'; enable 's'; scan 's'",
        &format!("Took T\nTook T\nTook T\n{row}"),
    );
    check(
        server,
        "delete_snapshot 'snap'; disable 's'; drop 's'; major_compact 's2'",
        "Took T\nTook T\nTook T\nTook T\n",
    );
    check(server, "scan 's2'", row);
    check(server, "list_snapshots 'x.*'", "SNAPSHOT  TABLE + CREATION TIME\n0 row(s)\nTook T\n");
    check(server, "disable 's2'; drop 's2'", "Took T\nTook T\n");
}

fn tables(server: &Server) {
    check(server, "list", "TABLE\n0 row(s)\nTook T\n");
    check(
        server,
        "create 'n1', {NAME => 'f', VERSIONS => 3}, {NAME => 'g'}, SPLITS => ['m', \"t\\xff\"]\ncreate 'n2', 'f'",
        "Created table n1\nTook T\nCreated table n2\nTook T\n",
    );
    check(server, "list 'n2.*'", "TABLE\nn2\n1 row(s)\nTook T\n");
    check(
        server,
        "exists 'n1'; exists 'no'",
        "Table n1 does exist\nTook T\nTable no does not exist\nTook T\n",
    );
    check(server, "is_enabled 'n1'; is_disabled 'n1'", "true\nTook T\nfalse\nTook T\n");
    let described = server.shell("describe 'n1'");
    let described = timeless(&described.stdout);
    assert!(described.starts_with("Table n1 is ENABLED\nn1"), "{described}");
    for part in
        ["\nCOLUMN FAMILIES DESCRIPTION\n{NAME => 'f', ", "VERSIONS => '3'", "{NAME => 'g', ", "\n2 row(s)\n"]
    {
        assert!(described.contains(part), "{part} in {described}");
    }
    let status = text(&server.shell("status").stdout);
    assert!(status.starts_with("1 active master, 0 backup masters, 1 servers, 0 dead, "), "{status}");
    check(server, "version", &format!("grampus {}\nTook T\n", env!("CARGO_PKG_VERSION")));
}

fn reads(server: &Server) {
    check(
        server,
        "put 'n1', 'a', 'f:q', 'v1', 1000; put 'n1', 'a', 'f:q', 'v2', 2000; put 'n1', 'a', 'g:', 5, 1\n\
         put 'n1', \"n\\x00\", \"f:\\xff\", \"\\x01\", 86400000; put 'n1', 'z', 'f:q', 'last', 3000",
        "Took T\nTook T\nTook T\nTook T\nTook T\n",
    );
    let all = "ROW  COLUMN+CELL\n \
               a column=f:q, timestamp=1970-01-01T00:00:02, value=v2\n \
               a column=g:, timestamp=1970-01-01T00:00:00.001, value=5\n \
               n\\x00 column=f:\\xFF, timestamp=1970-01-02T00:00, value=\\x01\n \
               z column=f:q, timestamp=1970-01-01T00:00:03, value=last\n3 row(s)\nTook T\n";
    check(server, "scan 'n1'", all);
    check(
        server,
        "flush 'n1'; compact 'n1'; major_compact 'n1'; scan 'n1'",
        &format!("Took T\nTook T\nTook T\n{all}"),
    );
    check(
        server,
        "scan 'n1', {REVERSED => true, LIMIT => 2, COLUMNS => ['f']}",
        "ROW  COLUMN+CELL\n \
         z column=f:q, timestamp=1970-01-01T00:00:03, value=last\n \
         n\\x00 column=f:\\xFF, timestamp=1970-01-02T00:00, value=\\x01\n2 row(s)\nTook T\n",
    );
    check(
        server,
        "scan 'n1', {STARTROW => 'b', STOPROW => 'z', COLUMNS => [\"f:\\xff\"]}",
        "ROW  COLUMN+CELL\n n\\x00 column=f:\\xFF, timestamp=1970-01-02T00:00, value=\\x01\n1 row(s)\nTook T\n",
    );
    check(
        server,
        "get 'n1', 'a', {COLUMN => 'f:q', VERSIONS => 5}; get 'n1', 'a', {COLUMN => 'f', TIMERANGE => [0, 2000]}",
        "COLUMN  CELL\n f:q timestamp=1970-01-01T00:00:02, value=v2\n \
         f:q timestamp=1970-01-01T00:00:01, value=v1\n1 row(s)\nTook T\n\
         COLUMN  CELL\n f:q timestamp=1970-01-01T00:00:01, value=v1\n1 row(s)\nTook T\n",
    );
    check(
        server,
        "get 'n1', 'a', 'g:', 'f:x'",
        "COLUMN  CELL\n g: timestamp=1970-01-01T00:00:00.001, value=5\n1 row(s)\nTook T\n",
    );
    check(server, "get 'n1', 'none'", "COLUMN  CELL\n0 row(s)\nTook T\n");
    check(server, "count 'n1'", "3 row(s)\nTook T\n");
    check(
        server,
        "count 'n1', {INTERVAL => 2, STARTROW => 'b'}",
        "Current count: 2, row: z\n2 row(s)\nTook T\n",
    );
}

fn aggregates(server: &Server) {
    let cells = [
        ("a", "town", "north"),
        ("a", "amount", "12"),
        ("b", "town", "south"),
        ("b", "amount", "20"),
        ("c", "town", "north"),
    ];
    let puts = cells.map(|(row, column, value)| format!("put 'n1', 'agg-{row}', 'f:{column}', '{value}'"));
    server.shell(&puts.join("; "));
    let rows = "STARTROW => 'agg-', STOPROW => 'agg.'";
    check(
        server,
        &format!(
            "aggregate 'n1', ['count(*)', 'sum(f:amount:text_long)', 'avg(f:amount:text_double)'], {{BY => 'f:town', {rows}}}"
        ),
        "f:town  count(*), sum(f:amount:text_long), avg(f:amount:text_double)\n \
         north 2, 12, 12\n south 1, 20, 20\n2 row(s)\nTook T\n",
    );
    check(
        server,
        &format!("aggregate 'n1', 'max(f:amount:text_long)', {{ONLY => {{'f:town' => 'north'}}, {rows}}}"),
        "GROUP  max(f:amount:text_long)\n all 12\n1 row(s)\nTook T\n",
    );
    for (wrong, why) in [
        ("aggregate 'n1', 'total(f:amount)'", "there is no function total"),
        ("aggregate 'n1', 'sum'", "is not an aggregate"),
        ("aggregate 'n1', 'sum(f)'", "no column"),
        (
            "aggregate 'n1', 'sum(f:amount:text_long)', {ONLY => {'f:amount:text_long' => 'x'}}",
            "is not a valid value",
        ),
        ("aggregate 'n1', 'sum(f:town:text_long)', {STARTROW => 'agg-'}", "agg-a"),
    ] {
        let told = server.shell(wrong);
        let told = String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).into_owned();
        assert!(told.contains(why), "{wrong}: {told}");
    }
    server.shell("deleteall 'n1', 'agg-a'; deleteall 'n1', 'agg-b'; deleteall 'n1', 'agg-c'");
    check(
        server,
        "aggregate 'n1', 'count(*)', {STARTROW => 'agg-', STOPROW => 'agg.'}",
        "GROUP  count(*)\n all 0\n1 row(s)\nTook T\n",
    );
}

fn deletes(server: &Server) {
    check(
        server,
        "delete 'n1', 'a', 'f:q'; get 'n1', 'a', 'f:q'",
        "Took T\nCOLUMN  CELL\n f:q timestamp=1970-01-01T00:00:01, value=v1\n1 row(s)\nTook T\n",
    );
    check(
        server,
        "deleteall 'n1', 'a', 'f:q'; get 'n1', 'a', 'f:q'",
        "Took T\nCOLUMN  CELL\n0 row(s)\nTook T\n",
    );
    check(
        server,
        "deleteall 'n1', 'a'; deleteall 'n1', 'z', 'f'; count 'n1'",
        "Took T\nTook T\n1 row(s)\nTook T\n",
    );
    let raw = timeless(&server.shell("scan 'n1', {RAW => true, VERSIONS => 9, STARTROW => 'z'}").stdout);
    assert!(raw.contains(" z column=f:, timestamp=T, type=DeleteFamily\n"), "{raw}");
}

fn counters(server: &Server) {
    check(
        server,
        "incr 'n1', 'c', 'f:n'; incr 'n1', 'c', 'f:n', 41; get_counter 'n1', 'c', 'f:n'; get 'n1', 'c', 'f:n:toLong'",
        "COUNTER VALUE = 1\nTook T\nCOUNTER VALUE = 42\nTook T\nCOUNTER VALUE = 42\nTook T\n\
         COLUMN  CELL\n f:n timestamp=T, value=42\n1 row(s)\nTook T\n",
    );
    check(
        server,
        "append 'n1', 'c', 'f:a', 'x'; append 'n1', 'c', 'f:a', 'y'; scan 'n1', FILTER => \"ValueFilter(=, 'binary:xy')\"",
        "CURRENT VALUE = x\nTook T\nCURRENT VALUE = xy\nTook T\n\
         ROW  COLUMN+CELL\n c column=f:a, timestamp=T, value=xy\n1 row(s)\nTook T\n",
    );
    check(
        server,
        "deleteall 'n1', {ROWPREFIXFILTER => 'c'}; get 'n1', 'c'",
        "Took T\nCOLUMN  CELL\n0 row(s)\nTook T\n",
    );
    check(server, "get_splits 'n1'", "Total number of splits = 3\nm\nt\\xFF\nTook T\n");
}

fn refusals(server: &Server) {
    check_refused(server, "scan 'no'", "Unknown table no!");
    check_refused(server, "drop 'no'", "Table no does not exist.");
    check_refused(server, "create 'n1', 'f'", "Table already exists: n1!");
    let shown = text(&server.shell("put 'n1', 'r', 'x:q', 'v'").stdout);
    let no_family =
        "regionserver.NoSuchColumnFamilyException: Column family x does not exist in region n1,m,";
    assert!(shown.starts_with(&format!("\nERROR: org.apache.hadoop.hbase.{no_family}")), "{shown}");
    check_refused(server, "drop 'n1'", "Table n1 is enabled. Disable it first.");
    check_refused(server, "put 'n1'", "wrong number of arguments (given 1, expected 4..6)");
    check_refused(server, "scan 'n1', FILTER => 'x'", "Incorrect Filter String");
    check_refused(server, "normalize", "line 1, column 1: normalize is not supported yet");
    check_refused(server, "alert 'n1'", "line 1, column 1: unknown command alert; see: help");
    let output = server.shell("list\nput 'n1', r");
    assert_eq!(
        text(&output.stderr),
        "grampus: line 2, column 11: unknown word r; text is written in quotes: 'r'\n"
    );
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("", Some(1)), "nothing is run");
    let output = server.shell("exists 'n1'; drop 'n1'; exists 'n2'");
    assert_eq!(text(&output.stderr), "grampus: command 2 of 3 failed: drop in line 1\n");
    assert!(!text(&output.stdout).contains("n2"), "the shell stops at the first failure");
}

/// Commands from a pipe and from a file.
fn ways_in(server: &Server) {
    let source = "exists 'n1'\nput 'n1',\n  'no'\nlist {\nexists(\n'n2'); exit\nexists 'n1'\n";
    let output = piped(server, &[], source);
    assert_eq!(output.status.code(), Some(0));
    let shown = timeless(&output.stdout);
    let hint = "\nERROR: wrong number of arguments (given 2, expected 4..6)\n\nFor usage try 'help \"put\"'\n\nTook T\n";
    let syntax = "\nERROR: line 5, column 1: unknown word exists; text is written in quotes: 'exists'\n\n";
    assert!(shown.starts_with(&format!("Table n1 does exist\nTook T\n{hint}{syntax}")), "{shown}");

    let output = piped(server, &["-n"], "exists 'n1'\nscan 'no'\nexists 'n2'\n");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "grampus: command failed: scan in line 2\n");
    let expected = "Table n1 does exist\nTook T\nROW  COLUMN+CELL\n\nERROR: Unknown table no!\n\nTook T\n";
    assert_eq!(timeless(&output.stdout), expected);
    let echoed = timeless(&piped(server, &["--echo"], "exists 'n2'\nlist\n").stdout);
    assert!(
        echoed.starts_with("grampus:001:0> exists 'n2'\nTable n2 does exist\nTook T\n=> true\n"),
        "{echoed}"
    );
    // The last line needs no newline. An unclosed quote in it is reported.
    assert_eq!(timeless(&piped(server, &[], "exists 'n2'").stdout), "Table n2 does exist\nTook T\n");
    let shown = timeless(&piped(server, &[], "exists 'n2").stdout);
    assert_eq!(shown, "\nERROR: line 1, column 8: text has no closing '\n\n");

    let dir = TempDir::new();
    let file = dir.join("script");
    std::fs::write(&file, "# a script\nexists 'n2'\n").unwrap();
    let output = server.shell_command(&["-f", file.to_str().unwrap()]).output().unwrap();
    assert_eq!(timeless(&output.stdout), "Table n2 does exist\nTook T\n");
    let address = server.zookeeper();
    let output = run(grampus().args(["shell", "--zookeeper", &address, "-e", "exists 'n2'"]));
    assert_eq!(timeless(&output.stdout), "Table n2 does exist\nTook T\n");
}

fn piped(server: &Server, arguments: &[&str], source: &str) -> Output {
    let mut command = server.shell_command(arguments);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn end_of_tables(server: &Server) {
    check(
        server,
        "disable 'n1'; is_disabled 'n1'; disable 'n1'; enable 'n1'; is_enabled 'n1'; disable 'n1'",
        "Took T\ntrue\nTook T\nTook T\nTook T\ntrue\nTook T\nTook T\n",
    );
    check_refused(server, "get 'n1', 'a'", "Table n1 is disabled!");
    check(server, "drop 'n1'; list", "Took T\nTABLE\nn2\n1 row(s)\nTook T\n");
}

#[test]
fn help_needs_no_server() {
    // No server listens on port 1.
    let shell = |commands: &str| run(grampus().args(["shell", "--zookeeper", "127.0.0.1:1", "-e", commands]));
    let output = shell("help; help 'scan'");
    let shown = text(&output.stdout);
    assert!(output.status.success());
    for part in [
        "  Group name: ddl\n  Commands: create, get_splits, list, ",
        "Show rows of a table in order",
        "REVERSED => true",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert_eq!(shell("help 'nothing'").status.code(), Some(1));
}
