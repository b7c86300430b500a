//! Static probes, which a program's authors put into it with `<sys/sdt.h>`. Each is a note in the program's
//! file.

use super::elf::text_at;

/// The owner of the notes.
const OWNER: &[u8] = b"stapsdt\0";
const KIND: u32 = 3;
/// Bytes of the three addresses that stand before the texts.
const ADDRESSES_BYTES: usize = 24;

/// A static probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    pub provider: String,
    pub name: String,
    /// The number of values that it passes.
    pub arguments: usize,
}

/// The probes in a section of notes, up to the first note that is cut off.
pub(super) fn probes(mut notes: &[u8]) -> Vec<Probe> {
    let mut found = Vec::new();
    while let Some((probe, rest)) = note(notes) {
        found.extend(probe);
        notes = rest;
    }
    found
}

/// The probe of the first note, if it is a probe's, and the notes behind it. `None` if the note is cut off.
fn note(bytes: &[u8]) -> Option<(Option<Probe>, &[u8])> {
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    // Three words: bytes of the owner, bytes of the content, kind. Then owner and content, each filled up to
    // whole words. The sizes may be anything, so that each sum is checked.
    let owner_bytes = word(0)? as usize;
    let begin = 12_usize.checked_add(owner_bytes.checked_next_multiple_of(4)?)?;
    let end = begin.checked_add(word(4)? as usize)?;
    let (owner, content) = (bytes.get(12..12 + owner_bytes)?, bytes.get(begin..end)?);
    let probe = if word(8)? == KIND && owner == OWNER { self::probe(content) } else { None };
    Some((probe, bytes.get(end.checked_next_multiple_of(4)?..).unwrap_or_default()))
}

fn probe(content: &[u8]) -> Option<Probe> {
    let provider = text_at(content, ADDRESSES_BYTES)?;
    let name_at = ADDRESSES_BYTES + provider.len() + 1;
    let name = text_at(content, name_at)?;
    // `-4@%edi 8@-8(%rbp)` describes two values.
    let arguments = text_at(content, name_at + name.len() + 1)?.split_whitespace().count();
    Some(Probe { provider: provider.to_owned(), name: name.to_owned(), arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note_of(owner: &[u8], texts: &[u8]) -> Vec<u8> {
        let content = [&[0; ADDRESSES_BYTES], texts].concat();
        let sizes = [owner.len() as u32, content.len() as u32, KIND].map(u32::to_le_bytes).concat();
        let mut note = [&sizes, owner, &content].concat();
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    #[test]
    fn klog_8_static_probes_are_found_among_other_notes_and_truncated_notes_are_ignored() {
        let notes = [
            note_of(b"GNU\0", b"xxxx"),
            note_of(OWNER, b"python\0gc__done\0-8@%rax 4@$2\0"),
            note_of(OWNER, b"libc\0setjmp\0\0"),
        ]
        .concat();
        let found: Vec<_> =
            probes(&notes).into_iter().map(|it| (it.provider, it.name, it.arguments)).collect();
        let expected = [("python", "gc__done", 2), ("libc", "setjmp", 0)];
        assert_eq!(found, expected.map(|(provider, name, count)| (provider.into(), name.into(), count)));
        for length in 0..notes.len() {
            assert!(probes(&notes[..length]).len() <= 2);
        }
        assert_eq!(probes(&[0xff; 64]), []);
    }
}
