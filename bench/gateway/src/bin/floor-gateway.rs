//! The floor gateway: the least that a gateway can do.
//!
//! `floor-gateway [--one-by-one] [--servers N] COMMAND…` listens on a free port of loopback, says its
//! address as the first line, starts the command N times and passes messages between: HTTP/1.1 in
//! front, one line for each message behind. Ids are rewritten, for clients number their requests
//! alike; the rest of a message stays as it came. No sessions, no streams, no lists, and nothing is
//! checked. `/mcp` leads to the first server, `/mcp/3` to the fourth.
//!
//! One thread, and six system calls for a call: wait, read, write, wait, read, write. Where more is
//! ready, fewer: what clients ask in one turn goes to the server in one piece. With `--one-by-one`
//! there is one thing in each turn, so that it is six for each call however many are in flight.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;

use gateway_bench::envelope::member;
use gateway_bench::floor::outgoing::Outgoing;
use gateway_bench::floor::request::{self, Request};
use gateway_bench::floor::upstream::Upstream;
use gateway_bench::floor::{Poll, receive};

const LISTENER: u64 = 0;
/// Tokens of what is polled: servers from here, clients above.
const SERVERS: u64 = 1;

/// What a client still waits for.
struct Pending {
    client: usize,
    /// Which connection had that place: another may have it when the answer comes.
    serial: u64,
    id: Vec<u8>,
}

struct Client {
    stream: TcpStream,
    serial: u64,
    input: Vec<u8>,
    output: Outgoing,
    /// One request at a time: answers go back in the order of requests.
    busy: bool,
}

struct Gateway {
    poll: Poll,
    listener: TcpListener,
    servers: Vec<Upstream>,
    clients: Vec<Option<Client>>,
    free: Vec<usize>,
    pending: Vec<Option<Pending>>,
    unused: Vec<usize>,
    serial: u64,
    /// An answer that fits is put together here and written at once.
    scratch: Vec<u8>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to be told where even this fails.
            let _ = writeln!(io::stderr(), "floor-gateway: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut count = 1;
    let is_one_by_one = words.first().is_some_and(|word| word == "--one-by-one");
    if is_one_by_one {
        words.remove(0);
    }
    if words.first().is_some_and(|word| word == "--servers") {
        count = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(1);
        words.drain(..2.min(words.len()));
    }
    let poll = Poll::new(if is_one_by_one { 1 } else { 256 })?;
    let mut servers = Vec::new();
    for number in 0..count {
        servers.push(Upstream::start(&words, &poll, SERVERS + number)?);
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    poll.add(&listener, LISTENER)?;
    let address = listener.local_addr()?;
    writeln!(io::stdout(), "http://{address}/mcp")?;
    io::stdout().flush()?;
    let mut gateway = Gateway {
        poll,
        listener,
        servers,
        clients: Vec::new(),
        free: Vec::new(),
        pending: Vec::new(),
        unused: Vec::new(),
        serial: 0,
        scratch: Vec::new(),
    };
    let mut tokens = Vec::new();
    loop {
        gateway.poll.wait(&mut tokens)?;
        for &token in &tokens {
            gateway.act(token)?;
        }
        // What several clients asked in this turn goes out in one piece.
        for server in &mut gateway.servers {
            server.flush(&gateway.poll)?;
        }
    }
}

impl Gateway {
    fn act(&mut self, token: u64) -> io::Result<()> {
        let clients = SERVERS + self.servers.len() as u64;
        if token == LISTENER {
            return self.accept();
        }
        if token < clients {
            return self.hear(usize::try_from(token - SERVERS).unwrap_or_default());
        }
        let place = usize::try_from(token - clients).unwrap_or_default();
        if self.serve(place).is_err() {
            // The client is gone; the descriptor leaves the poll with it.
            if self.clients[place].take().is_some() {
                self.free.push(place);
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            let place = self.free.pop().unwrap_or_else(|| {
                self.clients.push(None);
                self.clients.len() - 1
            });
            let token = SERVERS + (self.servers.len() + place) as u64;
            self.poll.add(&stream, token)?;
            self.serial += 1;
            self.clients[place] = Some(Client {
                stream,
                serial: self.serial,
                input: Vec::new(),
                output: Outgoing::new(token),
                busy: false,
            });
        }
    }

    /// Takes what a client sent, and sends what it could not take before.
    fn serve(&mut self, place: usize) -> io::Result<()> {
        let Some(client) = &mut self.clients[place] else {
            return Ok(());
        };
        client.output.flush(&client.stream, &self.poll)?;
        if receive(&client.stream, &mut client.input)? == Some(0) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.next_request(place)
    }

    /// Passes on the next whole request, if there is one and the last is answered.
    fn next_request(&mut self, place: usize) -> io::Result<()> {
        let Some(client) = &mut self.clients[place] else {
            return Ok(());
        };
        while !client.busy {
            let Some(request) = request::read(&client.input)? else {
                return Ok(());
            };
            let (server, body) = match &request {
                Request::Post { server, body } => (*server, body.clone()),
                Request::Other { .. } => (0, 0..0),
            };
            let end = request.end();
            let message = &client.input[body];
            let server = self.servers.get_mut(server);
            let answer: &[u8] = match (&request, server) {
                (Request::Other { is_end: true, .. }, _) => request::DONE,
                (Request::Other { .. }, _) => request::NOT_ALLOWED,
                (_, None) => request::NOT_FOUND,
                (_, Some(server)) => match member(message, b"id") {
                    Some(id) if member(message, b"method").is_some() => {
                        let number = self.unused.pop().unwrap_or_else(|| {
                            self.pending.push(None);
                            self.pending.len() - 1
                        });
                        self.pending[number] = Some(Pending {
                            client: place,
                            serial: client.serial,
                            id: message[id.clone()].to_vec(),
                        });
                        server.pass_on(message, Some((id, number)));
                        client.busy = true;
                        b""
                    }
                    _ => {
                        server.pass_on(message, None);
                        request::ACCEPTED
                    }
                },
            };
            client.output.send(answer, &client.stream, &self.poll)?;
            client.input.drain(..end);
        }
        Ok(())
    }

    /// Takes what a server said.
    fn hear(&mut self, number: usize) -> io::Result<()> {
        self.servers[number].receive()?;
        while let Some(line) = self.servers[number].line() {
            // What a server says unasked has no client here.
            let Some(id) = member(line.bytes(), b"id") else {
                continue;
            };
            let key = std::str::from_utf8(&line.bytes()[id.clone()]).unwrap_or_default();
            let Some(key) = key
                .parse::<usize>()
                .ok()
                .filter(|key| *key < self.pending.len())
            else {
                continue;
            };
            let Some(pending) = self.pending[key].take() else {
                continue;
            };
            self.unused.push(key);
            let Some(client) = &mut self.clients[pending.client] else {
                continue;
            };
            if client.serial != pending.serial {
                continue;
            }
            client.busy = false;
            let length = line.bytes().len() - id.len() + pending.id.len();
            self.scratch.clear();
            let head = &mut self.scratch;
            head.extend_from_slice(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ",
            );
            // Writing to memory cannot fail.
            let _ = write!(head, "{length}\r\n\r\n");
            head.extend_from_slice(&line.bytes()[..id.start]);
            head.extend_from_slice(&pending.id);
            let sent = client
                .output
                .send_line(head, line, id.end, &client.stream, &self.poll);
            if sent.is_err() || self.next_request(pending.client).is_err() {
                // The poll says so too, and then the client is let go.
                continue;
            }
        }
        Ok(())
    }
}
