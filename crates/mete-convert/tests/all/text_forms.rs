//! One recording, several readers (NEW-6, KLOG-7): the output is read back by the programs that it is meant
//! for.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::{NASTY, Scratch, record, trace_description, write_file};
use mete_convert::{Csv, Format, JsonLines, Perl, Text, convert, convert_while};
use mete_trace::record::DUMP_BEGIN;
use mete_trace::{AddressName, Filter, ThreadName, Trace};

/// The paper's event with the paper's numbers, an event with awkward text, a mark, gaps.
fn trace(scratch: &Scratch) -> Trace {
    let text = |at: usize| u64::from_le_bytes(NASTY[at..at + 8].try_into().unwrap());
    let records = [
        (119, record(0, 119, 103_207_175_760, &[1073, 35_678_014])),
        (
            120,
            record(
                1,
                120,
                103_207_175_770,
                &[text(0), text(8), 0.1_f64.to_bits(), 0x1_dead_beef, 0xffff_8880_0000_1000],
            ),
        ),
        (125, record(DUMP_BEGIN, 125, 103_207_175_780, &[])),
        (126, record(0, 126, 103_207_175_790, &[u64::MAX, u64::MAX])),
        (127, record(0, 127, 103_207_175_800, &[])),
    ];
    trace_description(1).write(scratch.path()).unwrap();
    write_file(scratch.path(), 0, &records, 130);
    Trace::open(scratch.path()).unwrap()
}

fn converted(trace: &Trace, mut format: impl Format) -> u64 {
    convert(trace, Filter::default(), &mut format).unwrap().events
}

/// The output of a format.
macro_rules! output {
    ($trace:expr, $format:ident) => {{
        let mut out = Vec::new();
        let done = convert($trace, Filter::default(), &mut $format::new(&mut out)).unwrap();
        assert_eq!((done.events, done.errors.len()), (5, 0));
        assert_eq!((done.accounts[0].records, done.accounts[0].lost), (5, 125));
        String::from_utf8(out).unwrap()
    }};
}

#[test]
fn klog_7_the_perl_form_has_the_papers_hash() {
    let scratch = Scratch::new("perl-text");
    let text = output!(&trace(&scratch), Perl);
    let expected = "{\n    header => {\n        \"type\"      => \"SCHEDIN\",\n        \"serial\"    => \"119\",\n        \
                    \"timestamp\" => \"103207175760\",\n        \"processor\" => \"0\",\n        \"file\"      => \"0\",\n    },\n    \"pid\" => \"1073\",\n    \
                    \"L2_cache_misses\" => \"35678014\",\n},\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn klog_7_the_real_perl_reads_the_trace_as_an_array_of_hashes() {
    let scratch = Scratch::new("perl");
    let text = output!(&trace(&scratch), Perl);
    let file = scratch.path().join("trace.pl");
    std::fs::write(&file, text).unwrap();
    let program = r#"
        my @events = do $ARGV[0];
        die "$@$!" if $@ || !@events;
        print scalar(@events), "|", scalar(@trace), "\n";
        for my $event (@events) {
            my %fields = %$event;
            my $header = delete $fields{header};
            my $values = join ",", map { my $v = $fields{$_} // "undef"; $_ . "=" . join ".", map { sprintf "%x", ord } split //, $v } sort keys %fields;
            print "$header->{type} $header->{serial} $header->{timestamp} $header->{processor} $values\n";
        }
    "#;
    let output = match Command::new("perl").args(["-we", program]).arg(&file).output() {
        Ok(output) => output,
        Err(error) => return println!("SKIPPED: the real perl reads the trace: no perl here ({error})"),
    };
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{out}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<_> = out.lines().collect();
    // There are gaps before 119, between 120 and 125, and after 127.
    assert_eq!(lines[0], "8|8");
    let hexadecimal =
        |text: &str| text.chars().map(|c| format!("{:x}", u32::from(c))).collect::<Vec<_>>().join(".");
    assert_eq!(lines[1], format!("LOST 0 0 0 events={}", hexadecimal("119")));
    let schedin = format!("L2_cache_misses={},pid={}", hexadecimal("35678014"), hexadecimal("1073"));
    assert_eq!(lines[2], format!("SCHEDIN 119 103207175760 0 {schedin}"));
    let nasty = String::from_utf8_lossy(NASTY);
    assert!(lines[3].contains(&format!("comm={}", hexadecimal(&nasty))), "{}", lines[3]);
    assert!(lines[3].contains(&format!("at={},", hexadecimal("0xffff888000001000"))), "{}", lines[3]);
    assert!(lines[4].starts_with("LOST 121 103207175770 0"));
    assert_eq!(lines[5], "DUMP_BEGIN 125 103207175780 0 ");
    assert!(lines[6].contains(&format!("pid={}", hexadecimal("-1"))));
    assert!(
        lines[7].contains(&format!("pid={}", hexadecimal("undef"))),
        "a field that is not there has no value"
    );
}

#[test]
fn new_6_every_line_of_json_is_an_object_with_exact_numbers() {
    let scratch = Scratch::new("json");
    let text = output!(&trace(&scratch), JsonLines);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["lost", "event", "event", "lost", "event", "event", "event", "lost", "completeness"]);
    assert_eq!(lines[1]["fields"]["L2_cache_misses"], 35_678_014);
    assert_eq!(lines[1]["time_ns"], 103_207_175_760_u64);
    assert_eq!(lines[2]["fields"]["comm"], String::from_utf8_lossy(NASTY).as_ref());
    assert_eq!((&lines[2]["fields"]["ratio"], &lines[2]["fields"]["raw"]), (&0.1.into(), &"efbeadde".into()));
    assert_eq!(
        (&lines[2]["fields"]["is_set"], &lines[2]["fields"]["at"]),
        (&true.into(), &"0xffff888000001000".into())
    );
    assert_eq!(lines[5]["fields"]["L2_cache_misses"], u64::MAX);
    assert_eq!(lines[6]["fields"]["pid"], serde_json::Value::Null);
    assert_eq!((&lines[8]["lost"], &lines[8]["ended"]), (&125.into(), &true.into()));
}

#[test]
fn new_6_csv_has_as_many_cells_in_each_row_as_columns() {
    let scratch = Scratch::new("csv");
    let text = output!(&trace(&scratch), Csv);
    let Some(rows) = python_csv(&text) else { return };
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{rows:?}");
    assert_eq!(rows.len(), 9);
    assert_eq!(
        rows[0][..9],
        ["processor", "file", "serial", "time_ns", "time", "event", "lost", "pid", "pid_name"]
    );
    assert_eq!(rows[1][5..7], ["LOST", "119"]);
    assert_eq!(
        rows[2][..12],
        ["0", "0", "119", "103207175760", "103207175760", "SCHEDIN", "", "1073", "", "", "", "35678014"]
    );
    assert_eq!(
        rows[3][12..],
        [&String::from_utf8_lossy(NASTY), "0.1", "efbeadde", "1", "0xffff888000001000", ""]
    );
}

/// The rows as Python's csv module reads them; `None` without Python.
fn python_csv(text: &str) -> Option<Vec<Vec<String>>> {
    let program = "import csv,io,json,sys; d=sys.stdin.buffer.read().decode(); \
                   print(json.dumps(list(csv.reader(io.StringIO(d, newline='')))))";
    let mut command = Command::new("python3");
    let child = command.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        println!("SKIPPED: CSV is read by Python: no python3 here");
        return None;
    };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn new_6_lines_for_people_tell_events_gaps_and_what_is_missing() {
    let scratch = Scratch::new("text");
    let text = output!(&trace(&scratch), Text);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "-- processor 0: 119 events lost, from #0 on");
    assert_eq!(lines[1], "103.207175760  [0]  #119  SCHEDIN  pid=1073 L2_cache_misses=35678014");
    assert!(lines[2].ends_with("raw=efbeadde is_set=yes at=0xffff888000001000"), "{}", lines[2]);
    assert!(lines[2].contains(r#"comm="a\"$x @{[1]}\\\n,"#), "{}", lines[2]);
    assert_eq!(lines[6], "103.207175800  [0]  #127  SCHEDIN  pid=? L2_cache_misses=?");
    assert_eq!(lines[8], "-- processor 0: 5 records, 125 events lost, of #0 to #129");
}

/// Makes a format that writes to an output.
type Begin = fn(&mut Vec<u8>) -> Box<dyn Format + '_>;

/// Serial numbers count within a file, of which a processor may have several.
#[test]
fn klog_6_events_of_different_files_with_one_number_can_be_distinguished() {
    let scratch = Scratch::new("files");
    let mut description = trace_description(2);
    description.files[1].programs_of = Some(0);
    description.write(scratch.path()).unwrap();
    for file in 0..2 {
        write_file(scratch.path(), file, &[(1, record(0, 1, 7 + u64::from(file), &[5, 6]))], 2);
    }
    let trace = Trace::open(scratch.path()).unwrap();
    let forms: [(Begin, [&str; 4]); 4] = [
        (
            |out| Box::new(Text::new(out)),
            ["-- processor 0: 1 events", "[0]  #1 ", "-- processor 0, file 1:", "[0/1]  #1 "],
        ),
        (
            |out| Box::new(JsonLines::new(out)),
            [
                r#""file":0,"first_serial":0"#,
                r#""processor":0,"file":0,"serial":1"#,
                r#""file":1,"first_serial":0"#,
                r#""processor":0,"file":1,"serial":1"#,
            ],
        ),
        (|out| Box::new(Csv::new(out)), ["0,0,0,,,LOST", "0,0,1,7,", "0,1,0,,,LOST", "0,1,1,8,"]),
        (
            |out| Box::new(Perl::new(out)),
            [
                "\"0\",\n        \"file\"      => \"0\",\n    },\n    \"events\"",
                "\"0\",\n        \"file\"      => \"0\",\n    },\n    \"pid\"",
                "\"0\",\n        \"file\"      => \"1\",\n    },\n    \"events\"",
                "\"0\",\n        \"file\"      => \"1\",\n    },\n    \"pid\"",
            ],
        ),
    ];
    for (form, expected) in forms {
        let mut out = Vec::new();
        convert(&trace, Filter::default(), &mut *form(&mut out)).unwrap();
        let text = String::from_utf8(out).unwrap();
        for expected in expected {
            assert_eq!(text.matches(expected).count(), 1, "{expected}: {text}");
        }
    }
}

#[test]
fn new_2_damage_is_reported_in_every_format_that_has_a_place_for_it() {
    let scratch = Scratch::new("damage");
    let trace = trace(&scratch);
    let path = scratch.path().join("processor-0.trace");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    for count in [
        converted(&trace, Perl::new(std::io::sink())),
        converted(&trace, JsonLines::new(std::io::sink())),
        converted(&trace, Csv::new(std::io::sink())),
    ] {
        assert_eq!(count, 0);
    }
    let mut out = Vec::new();
    let done = convert(&trace, Filter::default(), &mut Text::new(&mut out)).unwrap();
    assert_eq!(done.errors.len(), 1);
    assert!(String::from_utf8(out).unwrap().contains("the checksum is"));
}

/// The kernel's own names for its data. A name that would steer a terminal is not shown.
#[test]
fn klog_8_addresses_that_the_recorder_found_names_for_are_shown_by_them() {
    let scratch = Scratch::new("symbols");
    trace(&scratch);
    let address = 0xffff_8880_0000_1000;
    let shown = |name: &str| {
        let mut description = trace_description(1);
        description.machine.symbols = vec![AddressName { address, name: name.to_owned() }];
        description.write(scratch.path()).unwrap();
        let mut out = Vec::new();
        let trace = Trace::open(scratch.path()).unwrap();
        convert(&trace, Filter::default(), &mut Text::new(&mut out)).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(shown("tasklist_lock").contains("=tasklist_lock\n"), "{}", shown("tasklist_lock"));
    assert!(shown("a\u{1b}[2J").contains("=0xffff888000001000\n"));
}

#[test]
fn klog_7_threads_are_shown_with_the_names_that_the_recorder_saw() {
    let scratch = Scratch::new("threads");
    let mut description = trace_description(1);
    let make = ThreadName { thread: 5, process: 5, name: "ma\u{1b}ke".to_owned() };
    description.machine.threads = vec![make];
    description.write(scratch.path()).unwrap();
    write_file(scratch.path(), 0, &[(0, record(0, 0, 1, &[5, 6])), (1, record(0, 1, 2, &[6, 6]))], 2);
    let mut out = Vec::new();
    convert(&Trace::open(scratch.path()).unwrap(), Filter::default(), &mut Text::new(&mut out)).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains(" pid=5(ma?ke) L2_cache_misses=6\n"), "{text}");
    assert!(text.contains(" pid=6 L2_cache_misses=6\n"), "{text}");
}

#[test]
fn new_6_no_name_in_a_description_steers_a_terminal() {
    let scratch = Scratch::new("names");
    let refusal = |change: fn(&mut mete_trace::Description)| {
        let mut description = trace_description(1);
        change(&mut description.description);
        description.write(scratch.path()).unwrap();
        Trace::open(scratch.path()).unwrap_err().to_string()
    };
    for said in [
        refusal(|description| description.events[0].name = "A\u{1b}[2J".to_owned()),
        refusal(|description| description.events[0].fields[0].name = "\u{7}pid".to_owned()),
    ] {
        assert!(said.contains("names are C identifiers") && !said.contains(char::is_control), "{said}");
    }
}

#[test]
fn new_2_a_pass_that_is_stopped_says_nothing_about_what_it_has_not_seen() {
    let scratch = Scratch::new("stopped");
    trace_description(1).write(scratch.path()).unwrap();
    let records: Vec<_> = (0..40_000).map(|at| (at, record(0, at, at, &[5, 6]))).collect();
    write_file(scratch.path(), 0, &records, 40_000);
    let trace = Trace::open(scratch.path()).unwrap();
    let mut out = Vec::new();
    let mut stop = |_| std::ops::ControlFlow::Break(());
    let done = convert_while(&trace, Filter::default(), &mut Text::new(&mut out), &mut stop).unwrap();
    assert!(!done.is_whole && done.events > 0 && done.events < 40_000, "{done:?}");
    assert_eq!(out.iter().filter(|byte| **byte == b'\n').count() as u64, done.events, "events alone");
}
