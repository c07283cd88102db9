const std = @import("std");
export fn f(x: i32, y: i32, p: [*]i32) i32 {
    const a = x *% y;
    p[0] = a;
    if (a > 3) { p[1] = x *% y; return p[2] + (x *% y); }
    return x * y;
}
fn helper(s: []const u8, n: usize) !usize { if (s[n] == 'a') return error.Bad; return s[n] + s[n + 1]; }
export fn g(s: [*]const u8, n: usize) usize { return helper(s[0..16], n) catch |e| { std.log.err("{}", .{e}); return n * 2; }; }
