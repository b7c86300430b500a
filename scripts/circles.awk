# Reads the source files of one crate, and prints for each module which others it uses, a pair a line, as tsort takes them. Left
# out are pairs of which one is part of the other. What a module re-exports counts as used from where it is. Modules of tests stand last in
# their file, and are not read.

FNR == 1 { module = module_of(FILENAME); is_module[module] = 1; is_test = 0 }
/^#\[cfg\(test\)\]/ { is_test = 1 }
!is_test { sub(/\/\/.*/, ""); text[module] = text[module] " " $0 }

END {
	# Twice: what is re-exported may be a re-export itself.
	for (round = 0; round < 3; round++)
		for (module in text) each_use(module, round)
}

# module_of PATH: crate, crate::one, crate::one::other
function module_of(path) {
	sub(/^.*\/src\//, "", path)
	sub(/\.rs$/, "", path)
	sub(/\/mod$/, "", path)
	gsub(/\//, "::", path)
	return path == "lib" || path == "main" ? "crate" : "crate::" path
}

function each_use(module, round,    statements, number, nth, statement, words) {
	number = split(text[module], statements, ";")
	for (nth = 1; nth <= number; nth++) {
		statement = statements[nth]
		if (match(statement, /(^|[ }])(pub(\([a-z]*\))? )?use [a-z{]/)) {
			words = substr(statement, RSTART)
			expand(module, "", substr(words, index(words, "use ") + 4), round, words ~ /^[ }]?pub/)
			statement = substr(statement, 1, RSTART)
		}
		while (match(statement, /(crate|super)(::[A-Za-z_]+)+/)) {
			used(module, substr(statement, RSTART, RLENGTH), round, 0)
			statement = substr(statement, RSTART + RLENGTH)
		}
	}
}

# expand MODULE PREFIX LIST: the paths of what is used, without braces.
function expand(module, prefix, list, round, is_public,    depth, from, nth, letter, part) {
	list = list ","
	from = 1
	for (nth = 1; nth <= length(list); nth++) {
		letter = substr(list, nth, 1)
		if (letter == "{") depth++
		if (letter == "}") depth--
		if (letter != "," || depth > 0) continue
		part = substr(list, from, nth - from)
		from = nth + 1
		gsub(/^ +| +$| as .*/, "", part)
		if (part ~ /\{/)
			expand(module, prefix substr(part, 1, index(part, "{") - 1), substr(part, index(part, "{") + 1, length(part) - index(part, "{") - 1), round, is_public)
		else if (part != "")
			used(module, prefix part, round, is_public)
	}
}

function used(module, path, round, is_public,    target, name) {
	target = resolved(module, path)
	if (target == "") return
	name = path
	sub(/^.*::/, "", name)
	if (is_public) exported[module, name] = target
	if (round == 2 && !is_part(target, module) && !is_part(module, target) && !(is_public && is_part(target, module)))
		print module, target
}

# resolved MODULE PATH: the module in which what is used lies; empty if it is another crate's.
function resolved(module, path,    base, parts, number, nth) {
	number = split(path, parts, "::")
	nth = 1
	if (parts[1] == "crate") { base = "crate"; nth = 2 }
	else if (parts[1] == "self") { base = module; nth = 2 }
	else if (parts[1] == "super") for (base = module; parts[nth] == "super"; nth++) sub(/::[^:]*$/, "", base)
	else if (module "::" parts[1] in is_module) base = module
	else return ""
	for (; nth <= number && base "::" parts[nth] in is_module; nth++) base = base "::" parts[nth]
	return nth <= number && (base, parts[nth]) in exported ? exported[base, parts[nth]] : base
}

function is_part(one, other) { return one == other || index(one, other "::") == 1 }
