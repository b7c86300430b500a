//! The files as a tree of numbered nodes. Number 1 is the root, as FUSE requires.

use crate::error::MountError;
use crate::file::{Access, File};

/// The number of the root.
pub(crate) const ROOT: u64 = 1;

/// What a node in the tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Directory,
    File(Access),
}

/// A directory or a file. Its number is its index in the tree plus [`ROOT`].
#[derive(Debug)]
pub(crate) struct Node {
    pub parent: u64,
    pub name: String,
    /// The whole path in the tree; empty for the root.
    pub path: String,
    pub kind: NodeKind,
}

/// All nodes. They never change after the tree was built.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    /// The tree of these files, with the directories that their paths name.
    pub(crate) fn new(files: &[File]) -> Result<Tree, MountError> {
        let root = Node { parent: ROOT, name: String::new(), path: String::new(), kind: NodeKind::Directory };
        let mut tree = Tree { nodes: vec![root] };
        for file in files {
            tree.add(file)?;
        }
        Ok(tree)
    }

    fn add(&mut self, file: &File) -> Result<(), MountError> {
        let mut parent = ROOT;
        let (directories, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        for directory in directories.split('/').filter(|name| !name.is_empty()) {
            parent = match self.child(parent, directory) {
                Some((number, Node { kind: NodeKind::Directory, .. })) => number,
                Some(_) => return Err(MountError::SameName(directory.to_owned())),
                None => self.push(parent, directory, NodeKind::Directory),
            };
        }
        if self.child(parent, name).is_some() {
            return Err(MountError::SameName(file.path.clone()));
        }
        self.push(parent, name, NodeKind::File(file.access));
        Ok(())
    }

    fn push(&mut self, parent: u64, name: &str, kind: NodeKind) -> u64 {
        let above = self.node(parent).map_or("", |node| &node.path);
        let path = if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
        self.nodes.push(Node { parent, name: name.to_owned(), path, kind });
        // The index of the new node plus `ROOT`, which is 1.
        self.nodes.len() as u64
    }

    pub(crate) fn node(&self, number: u64) -> Option<&Node> {
        self.nodes.get(usize::try_from(number.checked_sub(ROOT)?).ok()?)
    }

    pub(crate) fn child(&self, parent: u64, name: &str) -> Option<(u64, &Node)> {
        self.children(parent).find(|(_, node)| node.name == name)
    }

    pub(crate) fn children(&self, parent: u64) -> impl Iterator<Item = (u64, &Node)> {
        let numbered = (ROOT..).zip(&self.nodes);
        // The root is its own parent, and must not be its own child.
        numbered.filter(move |(number, node)| *number != ROOT && node.parent == parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> Result<Tree, MountError> {
        Tree::new(&paths.iter().map(|path| File::new(*path, Access::Both)).collect::<Vec<_>>())
    }

    #[test]
    fn klog_4_files_are_where_their_paths_say() -> Result<(), MountError> {
        let tree = tree(&["enable", "benchmarks/A", "benchmarks/B", "A"])?;
        let names = |parent| tree.children(parent).map(|(_, node)| node.name.as_str()).collect::<Vec<_>>();
        assert_eq!(names(ROOT), ["enable", "benchmarks", "A"]);
        let (benchmarks, _) = tree.child(ROOT, "benchmarks").expect("it has files");
        assert_eq!(names(benchmarks), ["A", "B"]);
        let (_, file) = tree.child(benchmarks, "B").expect("it was given");
        assert_eq!((file.path.as_str(), file.kind), ("benchmarks/B", NodeKind::File(Access::Both)));
        assert!(tree.node(0).is_none() && tree.node(7).is_none());
        Ok(())
    }

    #[test]
    fn klog_4_two_files_of_one_name_are_refused() {
        for paths in [&["a", "a"][..], &["a/b", "a"], &["a", "a/b"], &["a/b", "a/b"]] {
            assert!(matches!(tree(paths), Err(MountError::SameName(_))), "{paths:?}");
        }
    }
}
