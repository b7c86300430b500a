//! Letters that do not look like what they are. Other people choose the names of programs, threads, users,
//! files and domains, and these names are shown on terminals.

/// Whether a letter controls the terminal, changes the order in which its neighbours are shown, or shows
/// nothing. These are the control characters, the format characters (Unicode's category Cf), the separators
/// of lines, and the letters that are empty by definition.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
            | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The letter, or `?` instead if it is [hidden](is_hidden).
pub fn shown(letter: char) -> char {
    if is_hidden(letter) { '?' } else { letter }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_6_letters_that_reorder_text_or_are_invisible_are_replaced() {
        let replaced = "\u{202e}\u{2066}\u{2069}\u{200b}\u{200f}\u{feff}\u{61c}\u{ad}\u{e0041}\u{2028}\u{3164}\u{1b}\u{9b}\u{7f}\n";
        assert!(replaced.chars().all(|letter| shown(letter) == '?'));
        let kept = "make-j4 é Привет λόγος עברית العربية 漢字 한글 हिन्दी ไทย 🦀 …–“”";
        assert!(kept.chars().all(|letter| shown(letter) == letter));
    }
}
