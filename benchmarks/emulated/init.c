// The only process of the emulated machine: runs /cases, tells how it ended on the serial line, and powers off.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static char processor[65536];

int main(void) {
    mkdir("/dev", 0755);
    mkdir("/proc", 0755);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    mount("proc", "/proc", "proc", 0, NULL);
    int serial = open("/dev/ttyS0", O_RDWR);
    for (int descriptor = 0; descriptor < 3; ++descriptor) dup2(serial, descriptor);
    int file = open("/proc/cpuinfo", O_RDONLY);
    ssize_t length = read(file, processor, sizeof processor - 1);
    processor[length > 0 ? length : 0] = 0;
    if (!strstr(processor, " avx512vl")) puts("END the emulated processor has no AVX-512");
    else {
        pid_t child = fork();
        if (!child) {
            execl("/cases", "/cases", (char *)NULL);
            _exit(127);
        }
        int status = 0;
        waitpid(child, &status, 0);
        printf("END cases ended with status %d\n", status);
    }
    fflush(stdout);
    tcdrain(1);
    sleep(2);
    reboot(RB_POWER_OFF);
    return 0;
}
