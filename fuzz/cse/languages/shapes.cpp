#include <vector>
#include <string>
#include <stdexcept>
#include <thread>
#include <mutex>
#include <cstdarg>
struct Shape { virtual ~Shape() {} virtual int area(int k) const = 0; };
struct Sq : Shape { int a; Sq(int a): a(a) {} int area(int k) const override { int t = a * k + 3; if (k > 5) { t += a * k + 3; } return t; } };
template <class T> struct Table { static const T values[8]; static T get(int i) { return values[i & 7]; } };
template <class T> const T Table<T>::values[8] = {1,2,3,4,5,6,7,8};
inline int counter = 3;
thread_local int tl = 7;
static std::mutex m;
int use(Shape *s, int n) {
  int r = s->area(n * 5 + 2);
  if (auto q = dynamic_cast<Sq*>(s)) { r += q->a * (n * 5 + 2); }
  counter += n * 5 + 2;
  return r + Table<int>::get(n * 5 + 2) + Table<int>::get(r);
}
int thrower(int x, int y) {
  int p = x * y;
  try { if (p > 100) throw std::runtime_error("big"); tl += p; counter += x * y; }
  catch (const std::exception &e) { return p + x * y + (int)e.what()[0]; }
  return x * y + tl;
}
int locked(int *a, int i) { std::lock_guard<std::mutex> g(m); int v = a[i * 3]; if (v > 2) { a[i*3] = v - 1; return a[i * 3 + 1]; } return a[i*3+1]; }
int sum(int n, ...) { va_list ap; va_start(ap, n); int s = 0; for (int i = 0; i < n; i++) { int v = va_arg(ap, int); if (v > n * 3) s += n * 3; else s += v; } va_end(ap); return s; }
std::string join(const std::vector<std::string> &v) { std::string s; for (auto &x : v) { if (!s.empty()) s += ","; s += x; } return s; }
void run(int n) { std::thread t([n] { counter += n * 7; if (n > 3) counter += n * 7; }); t.join(); }
struct Init { Init() { counter = 9; } } init_;
