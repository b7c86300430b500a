//! The file system: answers the kernel's requests from the tree and the store.
//!
//! A file has no size until it is read, as in `/proc`. Nothing is cached. A value is what one system call
//! writes.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use crate::file::{Access, Refusal, Store};
use crate::tree::{Node, NodeKind, ROOT, Tree};

/// How long the kernel may remember an answer: not at all.
const TTL: Duration = Duration::ZERO;
/// The longest value that can be written, in bytes.
const MAX_VALUE_BYTES: usize = 4096;

pub(crate) struct Server<S> {
    tree: Tree,
    store: S,
    since: SystemTime,
    next_handle: AtomicU64,
    /// The text of each open file, as it was when the file was read from its beginning: a program that reads
    /// in small steps sees one text.
    texts: Mutex<HashMap<u64, String>>,
}

impl<S: Store> Server<S> {
    pub(crate) fn new(tree: Tree, store: S) -> Server<S> {
        let (since, next_handle) = (SystemTime::now(), AtomicU64::new(0));
        Server { tree, store, since, next_handle, texts: Mutex::default() }
    }

    fn node(&self, number: INodeNo) -> Result<&Node, Errno> {
        self.tree.node(number.0).ok_or(Errno::ENOENT)
    }

    fn file(&self, number: INodeNo) -> Result<(&str, Access), Errno> {
        let node = self.node(number)?;
        match node.kind {
            NodeKind::File(access) => Ok((&node.path, access)),
            NodeKind::Directory => Err(Errno::EISDIR),
        }
    }

    fn attributes(&self, number: u64, node: &Node) -> FileAttr {
        let (kind, perm, nlink) = match node.kind {
            NodeKind::Directory => (FileType::Directory, 0o700, 2),
            NodeKind::File(access) => (FileType::RegularFile, access.mode(), 1),
        };
        FileAttr {
            ino: INodeNo(number),
            size: 0,
            blocks: 0,
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: self.since,
            kind,
            perm,
            nlink,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    /// Checks the access itself, because the permissions of files do not hold for root. A file without a
    /// value cannot be read by root either.
    fn may_open(&self, number: INodeNo, flags: OpenFlags) -> Result<(), Errno> {
        let (_, access) = self.file(number)?;
        let (reads, writes) = match flags.acc_mode() {
            OpenAccMode::O_RDONLY => (true, false),
            OpenAccMode::O_WRONLY => (false, true),
            OpenAccMode::O_RDWR => (true, true),
        };
        let may = (!reads || access.may_read()) && (!writes || access.may_write());
        if may { Ok(()) } else { Err(Errno::EACCES) }
    }

    fn text(&self, number: INodeNo, handle: FileHandle, offset: u64) -> Result<String, Errno> {
        let (path, _) = self.file(number)?;
        let mut texts = self.texts();
        // Only at the beginning: the value may change between two steps of a reader.
        if offset == 0 {
            let text = self.store.read(path).map_err(number_of)?;
            texts.insert(handle.0, text);
        }
        Ok(texts.get(&handle.0).cloned().unwrap_or_default())
    }

    /// Sets a value. Each write is a whole value, at whatever offset in the file: a program may write one
    /// value after the other.
    fn set(&self, number: INodeNo, data: &[u8]) -> Result<u32, Errno> {
        let (path, _) = self.file(number)?;
        if data.len() > MAX_VALUE_BYTES {
            return Err(Errno::EINVAL);
        }
        let value = std::str::from_utf8(data).map_err(|_| Errno::EINVAL)?;
        self.store.write(path, value.trim()).map_err(number_of)?;
        Ok(data.len() as u32)
    }

    /// The texts. A panic of code that held the lock is of no consequence, because no change leaves the texts
    /// half done.
    fn texts(&self) -> MutexGuard<'_, HashMap<u64, String>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn number_of(refusal: Refusal) -> Errno {
    Errno::from_i32(refusal.errno.raw_os_error())
}

fn attr(answer: Result<FileAttr, Errno>, reply: ReplyAttr) {
    match answer {
        Ok(attributes) => reply.attr(&TTL, &attributes),
        Err(error) => reply.error(error),
    }
}

impl<S: Store> Filesystem for Server<S> {
    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name.to_str().and_then(|name| self.tree.child(parent.0, name)) {
            Some((number, node)) => reply.entry(&TTL, &self.attributes(number, node), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, number: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        attr(self.node(number).map(|node| self.attributes(number.0, node)), reply);
    }

    /// A shell truncates a file into which it redirects output. There is nothing else that can be set.
    fn setattr(
        &self,
        _request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let is_ownership = mode.is_some() || uid.is_some() || gid.is_some();
        let node = if is_ownership { Err(Errno::EPERM) } else { self.node(number) };
        attr(node.map(|node| self.attributes(number.0, node)), reply);
    }

    fn open(&self, _request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.may_open(number, flags) {
            Ok(()) => {
                // Relaxed: the numbers only have to differ.
                let handle = self.next_handle.fetch_add(1, Ordering::Relaxed);
                // Direct, because a file without a size would otherwise be read as empty.
                reply.opened(FileHandle(handle), FopenFlags::FOPEN_DIRECT_IO);
            }
            Err(error) => reply.error(error),
        }
    }

    /// If a shell redirects into a file that does not exist, its name is mistyped.
    fn mknod(
        &self,
        _request: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _device: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::ENOENT);
    }

    /// The tree cannot be changed, neither here nor in the functions below.
    fn mkdir(
        &self,
        _request: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EPERM);
    }

    fn unlink(&self, _request: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rmdir(&self, _request: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rename(
        &self,
        _request: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _new_parent: INodeNo,
        _new_name: &OsStr,
        _flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EPERM);
    }

    fn read(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.text(number, handle, offset) {
            Ok(text) => {
                // A text that has become shorter, or an offset behind its end, gives an empty answer.
                let rest = text.as_bytes().get(offset as usize..).unwrap_or_default();
                reply.data(&rest[..rest.len().min(size as usize)]);
            }
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        _offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.set(number, data) {
            Ok(written) => reply.written(written),
            Err(error) => reply.error(error),
        }
    }

    fn flush(
        &self,
        _request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn release(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.texts().remove(&handle.0);
        reply.ok();
    }

    fn readdir(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let Ok(Node { parent, kind: NodeKind::Directory, .. }) = self.node(number) else {
            return reply.error(Errno::ENOTDIR);
        };
        let own = [(number.0.max(ROOT), NodeKind::Directory, "."), (*parent, NodeKind::Directory, "..")];
        let below =
            self.tree.children(number.0).map(|(number, node)| (number, node.kind, node.name.as_str()));
        // The offset of an entry is where to go on behind it, so entries count from 1.
        for (next, (number, kind, name)) in (1..).zip(own.into_iter().chain(below)).skip(offset as usize) {
            let kind = if kind == NodeKind::Directory { FileType::Directory } else { FileType::RegularFile };
            // The answer is full. The kernel asks again from this offset on.
            if reply.add(INodeNo(number), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
