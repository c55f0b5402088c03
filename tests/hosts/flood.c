/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flood ADDRESS PORT SECONDS - sends datagrams of random bytes and lengths to
 * a port, as fast as it can; every other one begins as libhvd's do.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

int main(int argc, char **argv)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    unsigned char bytes[1400];
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    long sent = 0;
    time_t end;

    if (argc != 4 || fd < 0 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
        return 2;
    to.sin_port = htons((unsigned short)atoi(argv[2]));
    end = time(NULL) + atoi(argv[3]);
    srand(1);
    while (time(NULL) < end) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)rand();
        for (size_t size = 0; size < sizeof bytes; size += 7) {
            if (size % 2)
                memcpy(bytes, "hvd1", 4);
            sent += sendto(fd, bytes, size, 0, (struct sockaddr *)&to,
                           sizeof to) >= 0;
        }
    }
    printf("sent %ld\n", sent);
    return sent == 0;
}
