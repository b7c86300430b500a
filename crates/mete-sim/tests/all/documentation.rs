//! `docs/scenarios.md` and the reader of scenario files agree.

use mete_sim::Scenario;

const DOCUMENT: &str = include_str!("../../../../docs/scenarios.md");
const LEAST: &str = "about = \"\"\nduration_ms = 1\n[[task]]\nname = \"t\"\nprogram = [{ compute_ms = 1 }]\n";

/// The keys that the refusal of an unknown key names as allowed.
fn allowed(text: &str) -> Vec<String> {
    let refused = Scenario::parse("x.toml", text, &[]).expect_err("no table has such a key").to_string();
    let behind = refused.rsplit_once("available keys:").or_else(|| refused.rsplit_once(" expected"));
    let (_, list) = behind.unwrap_or_else(|| panic!("{refused}"));
    let words = list.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
    words.filter(|word| !word.is_empty() && !["one", "of", "or"].contains(word)).map(str::to_owned).collect()
}

#[test]
fn every_key_that_a_scenario_may_have_is_documented() {
    let step = |step: &str| LEAST.replace("{ compute_ms = 1 }", step);
    let tables = [
        format!("no_such_key = 1\n{LEAST}"),
        step("{ no_such_key = 1 }"),
        step("{ compute_ms = { no_such_key = 1 } }"),
        step("{ read = { no_such_key = 1 } }"),
        step("{ read_on = { no_such_key = 1 } }"),
        step("{ receive_all = { no_such_key = 1 } }"),
        step("{ request = { no_such_key = 1 } }"),
        step("{ send = { no_such_key = 1 } }"),
        format!("{LEAST}no_such_key = 1\n"),
        format!("{LEAST}[policy.bvt]\nwarp = {{ no_such_key = 1 }}\n"),
        format!("{LEAST}[[guest]]\nno_such_key = 1\n"),
        format!("{LEAST}[[guest]]\nname = \"g\"\n[[guest.task]]\nno_such_key = 1\n"),
        format!("{LEAST}[[guest]]\nname = \"g\"\nscheduler = {{ no_such_key = 1 }}\n"),
        format!("{LEAST}[[guest]]\nname = \"g\"\nscheduler = {{ fair = {{ no_such_key = 1 }} }}\n"),
        format!("{LEAST}[[remote]]\nname = \"r\"\nasks = {{ no_such_key = 1 }}\n"),
        format!("{LEAST}[[remote]]\nname = \"r\"\nsends = {{ no_such_key = 1 }}\n"),
        format!("{LEAST}[[remote]]\nname = \"r\"\nserves = {{ no_such_key = 1 }}\n"),
    ];
    let heads = [
        "[host]",
        "[policy]",
        "[policy.credit]",
        "[policy.bvt]",
        "[[domain]]",
        "[[disk]]",
        "[network]",
        "[driver]",
    ];
    let heads = heads.into_iter().chain(["[[remote]]", "[[change]]"]);
    let by_head = heads.map(|head| format!("{LEAST}{head}\nno_such_key = 1\n"));
    let mut keys = 0;
    for text in tables.into_iter().chain(by_head) {
        for key in allowed(&text) {
            let is_there =
                [format!("`{key}`"), format!("{key} = "), format!("[{key}]"), format!("\"{key}\"")];
            assert!(is_there.iter().any(|form| DOCUMENT.contains(form)), "{key} is not documented");
            keys += 1;
        }
    }
    assert!(keys > 100, "{keys}");
}

#[test]
fn the_documents_example_is_a_scenario() {
    let examples: Vec<_> = DOCUMENT.split("```toml").skip(1).collect();
    assert!(!examples.is_empty());
    for example in examples {
        let (example, _) = example.split_once("```").expect("it ends");
        Scenario::parse("docs/scenarios.md", example, &[]).expect("it is right");
    }
}
