; Output of compilers of C++, Rust and Zig: virtual tables and type information in comdats, data of templates,
; an alias, an ifunc, a constructor, thread-local data, exceptions, variable arguments, and debug information.
source_filename = "languages.cpp"
target triple = "x86_64-unknown-linux-gnu"

$_ZTV4Base = comdat any
$_ZTI4Base = comdat any
$_ZTS4Base = comdat any
$"data, comdat" = comdat any
$inline = comdat any

@_ZTV4Base = linkonce_odr dso_local unnamed_addr constant { [3 x ptr] } { [3 x ptr] [ptr null, ptr @_ZTI4Base, ptr @inline] }, comdat, align 8
@_ZTI4Base = linkonce_odr dso_local constant { ptr, ptr } { ptr @_ZTVN10__cxxabiv117__class_type_infoE, ptr @_ZTS4Base }, comdat, align 8
@_ZTS4Base = linkonce_odr dso_local constant [6 x i8] c"4Base\00", comdat, align 1
@_ZTVN10__cxxabiv117__class_type_infoE = external global [0 x ptr]
@"data, comdat" = linkonce_odr constant [15 x i8] c", comdat, align", comdat($"data, comdat"), align 1
@seen = global i32 0, align 4, !dbg !0
@mine = thread_local global i32 7, align 4
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @begin, ptr null }]
@other = alias i32 (i32), ptr @inline
@same = alias i32 (i32, i32), ptr @tables
@again = weak alias i32, ptr @seen
@fast = ifunc i32 (i32), ptr @resolve

declare i32 @__gxx_personality_v0(...)
declare !dbg !9 void @told(i32)
declare ptr @llvm.threadlocal.address.p0(ptr)
declare void @llvm.va_start.p0(ptr)
declare void @llvm.va_end.p0(ptr)

define internal void @begin() section ".text.startup" {
entry:
  store i32 9, ptr @seen, align 4
  ret void
}

define internal ptr @resolve() {
entry:
  ret ptr @inline
}

define linkonce_odr i32 @inline(i32 %x) unnamed_addr comdat align 2 {
entry:
  %y = mul i32 %x, 5
  ret i32 %y
}

define i32 @tables(i32 %x, i32 %n) {
entry:
  %a = mul nsw i32 %x, %n
  %big = icmp sgt i32 %a, 3
  br i1 %big, label %then, label %end
then:
  %i = and i32 %a, 7
  %p = getelementptr [15 x i8], ptr @"data, comdat", i32 0, i32 %i
  %v = load ptr, ptr getelementptr inbounds ({ [3 x ptr] }, ptr @_ZTV4Base, i32 0, i32 0, i32 2), align 8
  %c = load i8, ptr %p, align 1
  %w = zext i8 %c to i32
  %r = call i32 %v(i32 %w)
  %b = mul nsw i32 %x, %n
  store i32 %b, ptr @again, align 4
  br label %end
end:
  %s = phi i32 [ 0, %entry ], [ %r, %then ]
  %d = mul nsw i32 %x, %n
  %e = add i32 %d, %s
  ret i32 %e
}

define i32 @symbols(i32 %x, i32 %n) {
entry:
  %m = mul i32 %x, %n
  %a = call i32 @other(i32 %m)
  %big = icmp sgt i32 %a, 3
  br i1 %big, label %then, label %end
then:
  %t = call ptr @llvm.threadlocal.address.p0(ptr @mine)
  store i32 %a, ptr %t, align 4
  %m2 = mul i32 %x, %n
  %b = call i32 @fast(i32 %m2)
  br label %end
end:
  %s = phi i32 [ 0, %entry ], [ %b, %then ]
  %m3 = mul i32 %x, %n
  %e = add i32 %m3, %s
  ret i32 %e
}

define i32 @throws(i32 %x, i32 %n) personality ptr @__gxx_personality_v0 {
entry:
  %m = mul i32 %x, %n
  invoke void @told(i32 %m)
          to label %end unwind label %caught
caught:
  %l = landingpad { ptr, i32 }
          catch ptr @_ZTI4Base
  %m2 = mul i32 %x, %n
  %s = add i32 %m2, 1
  br label %end
end:
  %r = phi i32 [ %m, %entry ], [ %s, %caught ]
  %m3 = mul i32 %x, %n
  %e = add i32 %m3, %r
  ret i32 %e
}

define i32 @varies(i32 %x, ...) {
entry:
  %list = alloca [24 x i8], align 16
  %m = mul i32 %x, %x
  call void @llvm.va_start.p0(ptr %list)
  %v = va_arg ptr %list, i32
  call void @llvm.va_end.p0(ptr %list)
  %big = icmp sgt i32 %v, %m
  br i1 %big, label %then, label %end
then:
  call void @told(i32 %v)
  %m2 = mul i32 %x, %x
  %w = xor i32 %m2, %v
  br label %end
end:
  %r = phi i32 [ %v, %entry ], [ %w, %then ]
  ret i32 %r
}

define i32 @debugged(i32 %x, i32 %n) !dbg !5 {
entry:
    #dbg_value(i32 %x, !8, !DIExpression(), !10)
  %m = mul nsw i32 %x, %n, !dbg !10
    #dbg_value(i32 %m, !8, !DIExpression(), !10)
  call void @told(i32 %m), !dbg !10
  %big = icmp sgt i32 %m, 3, !dbg !10
  br i1 %big, label %then, label %end, !dbg !10
then:
  %m2 = mul i32 %x, %n, !dbg !11
    #dbg_value(i32 %m2, !8, !DIExpression(), !11)
  call void @told(i32 %m2), !dbg !11
  br label %end, !dbg !11
end:
  ret i32 %m, !dbg !11
}

!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!4}
!0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())
!1 = distinct !DIGlobalVariable(name: "seen", scope: !2, file: !3, line: 1, type: !7, isLocal: false, isDefinition: true)
!2 = distinct !DICompileUnit(language: DW_LANG_C11, file: !3, producer: "a compiler", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug, globals: !12)
!3 = !DIFile(filename: "languages.cpp", directory: "/")
!4 = !{i32 2, !"Debug Info Version", i32 3}
!5 = distinct !DISubprogram(name: "debugged", scope: !3, file: !3, line: 2, type: !6, unit: !2, spFlags: DISPFlagDefinition)
!6 = !DISubroutineType(types: !13)
!7 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!8 = !DILocalVariable(name: "m", scope: !5, file: !3, line: 3, type: !7)
!9 = !DISubprogram(name: "told", scope: !3, file: !3, line: 1, type: !6, spFlags: 0)
!10 = !DILocation(line: 3, scope: !5)
!11 = !DILocation(line: 4, scope: !5)
!12 = !{!0}
!13 = !{!7, !7}
