//! Any bytes are type information of a kernel or are refused; whatever is asked of them is answered.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mete_schema::kernel::{Btf, KernelTypes, Type, record_fields};

fuzz_target!(|bytes: &[u8]| {
    record_fields(&String::from_utf8_lossy(bytes));
    let Ok(btf) = Btf::parse("fuzz", bytes) else { return };
    let names = btf.tracepoints().into_iter().chain(btf.functions()).take(16);
    for name in names {
        btf.tracepoint(&name);
        btf.function(&name);
        let _ = btf.record("group", &name);
    }
    for id in 0..64 {
        if let Type::Record(id) = btf.kind(id) {
            btf.members(id);
            btf.structure(&btf.structure_name(id));
        }
    }
});
