//! Tests of the executable file.

use std::fs;

use object::Endianness;
use object::elf::{DF_1_NOW, DF_1_PIE, DT_FLAGS_1, FileHeader64, PT_GNU_RELRO};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

/// The executable is position-independent, and all addresses are resolved at the start, so that they are
/// read-only afterwards. Both depend on linker options of the build, so no compiler error would show their
/// loss.
#[test]
fn it_lies_at_another_place_each_time_and_addresses_in_it_are_read_only() {
    let bytes = fs::read(env!("CARGO_BIN_EXE_taskpawl")).unwrap();
    let header = FileHeader64::<Endianness>::parse(&*bytes).unwrap();
    let endian = header.endian().unwrap();
    let segments = header.program_headers(endian, &*bytes).unwrap();
    assert!(segments.iter().any(|segment| segment.p_type(endian) == PT_GNU_RELRO));
    let dynamic = segments.iter().find_map(|segment| segment.dynamic(endian, &*bytes).unwrap()).unwrap();
    let flags = dynamic.iter().find(|entry| entry.tag(endian) == DT_FLAGS_1).unwrap().val(endian);
    assert_eq!((flags & DF_1_NOW.0, flags & DF_1_PIE.0), (DF_1_NOW.0, DF_1_PIE.0));
}
