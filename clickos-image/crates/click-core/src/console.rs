// SPDX-License-Identifier: Apache-2.0
//! Lines for the console, limited in rate: packets decide how many there are.
use alloc::format;
use alloc::rc::Rc;

pub struct Console {
    write: Rc<dyn Fn(&str)>,
    per_second: u32,
    second: u64,
    left: u32,
    suppressed: u64,
}

impl Console {
    pub fn new(write: Rc<dyn Fn(&str)>, per_second: u32) -> Self {
        Self {
            write,
            per_second,
            second: 0,
            left: per_second,
            suppressed: 0,
        }
    }

    pub fn print(&mut self, now_ns: u64, line: &str) {
        let second = now_ns / 1_000_000_000;
        if second != self.second {
            if self.suppressed > 0 {
                (self.write)(&format!("({} lines were suppressed)", self.suppressed));
            }
            (self.second, self.left, self.suppressed) = (second, self.per_second, 0);
        }
        if self.left == 0 {
            self.suppressed += 1;
            return;
        }
        self.left -= 1;
        (self.write)(line);
    }
}
