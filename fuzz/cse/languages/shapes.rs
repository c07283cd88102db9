#![crate_type="lib"]
pub trait Shape { fn area(&self, k: i32) -> i32; }
pub struct Sq(pub i32);
impl Shape for Sq { fn area(&self, k: i32) -> i32 { let t = self.0 * k + 3; if k > 5 { t + self.0 * k + 3 } else { t } } }
pub fn total(v: &[Box<dyn Shape>], n: i32) -> i32 { v.iter().map(|s| s.area(n * 4)).sum::<i32>() + n * 4 }
pub fn pick(v: &[u32], i: usize) -> u32 { if v[i] > 3 { v[i] - v[i + 1] } else { v[i + 1] + v[i] } }
pub fn text(s: &str) -> String { let mut o = String::new(); for c in s.chars() { if c.is_alphabetic() { o.push(c); } else { o.push('-'); o.push(c) } } o }
#[no_mangle] pub extern "C" fn sum(p: *const i32, n: usize) -> i32 { let mut s = 0i32; for i in 0..n { let v = unsafe { *p.add(i * 2) }; if v > 1 { s = s.wrapping_add(unsafe { *p.add(i * 2) }); } } s }
