//! A session bus that stops answering: like a keychain behind an unseen prompt.
//!
//! Owns a socket that speaks just enough D-Bus to be waited for. It never has a secret.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

use tempfile::TempDir;

/// Where it falls silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SilentAt {
    /// It accepts the connection and says nothing.
    Connection,
    /// It lets the client in, and answers no message: the bus hangs.
    Bus,
    /// It greets the client and answers nothing after that: the bus works, the service hangs.
    Service,
}

/// A session bus that falls silent; gone when dropped.
///
/// ```
/// use toolway_testkit::silent_bus::{SilentAt, SilentBus};
///
/// let bus = SilentBus::start(SilentAt::Service);
/// let (name, value) = bus.env();
/// assert_eq!(name, "DBUS_SESSION_BUS_ADDRESS");
/// assert!(value.starts_with("unix:path="));
/// // A program started with that variable finds a bus, and waits for ever if it waits without end.
/// assert_eq!(bus.connections(), 0);
/// ```
#[derive(Debug)]
pub struct SilentBus {
    address: String,
    shared: Arc<BusState>,
    thread: Option<JoinHandle<()>>,
    folder: TempDir,
}

#[derive(Debug)]
struct BusState {
    silence: SilentAt,
    connections: AtomicUsize,
    messages: AtomicUsize,
    stopped: AtomicBool,
    sockets: Mutex<Vec<Weak<UnixStream>>>,
}

impl SilentBus {
    /// Starts it at a path of its own.
    pub fn start(silence: SilentAt) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("bus");
        let listener = UnixListener::bind(&path).expect("a socket in a folder of our own");
        let shared = Arc::new(BusState {
            silence,
            connections: AtomicUsize::new(0),
            messages: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            sockets: Mutex::default(),
        });
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || serve(&shared, &listener)
        });
        Self {
            address: format!("unix:path={}", path.display()),
            shared,
            thread: Some(thread),
            folder,
        }
    }

    /// Its address, as a client is told it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The variable that leads a program to it.
    pub fn env(&self) -> (&'static str, &str) {
        ("DBUS_SESSION_BUS_ADDRESS", &self.address)
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// How many messages came, the greeting included.
    pub fn messages(&self) -> usize {
        self.shared.messages.load(Ordering::SeqCst)
    }
}

impl Drop for SilentBus {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        drop(UnixStream::connect(self.folder.path().join("bus")));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn serve(shared: &Arc<BusState>, listener: &UnixListener) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            break;
        }
        let Ok(stream) = stream else { continue };
        let stream = Arc::new(stream);
        shared.connections.fetch_add(1, Ordering::SeqCst);
        {
            let mut sockets = shared
                .sockets
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            sockets.retain(|socket| socket.strong_count() > 0);
            sockets.push(Arc::downgrade(&stream));
        }
        threads.retain(|thread| !thread.is_finished());
        let shared = Arc::clone(shared);
        // A client that goes away ends only its own thread.
        threads.push(std::thread::spawn(move || drop(converse(&shared, &stream))));
    }
    let sockets = std::mem::take(
        &mut *shared
            .sockets
            .lock()
            .unwrap_or_else(PoisonError::into_inner),
    );
    for socket in sockets.iter().filter_map(Weak::upgrade) {
        drop(socket.shutdown(Shutdown::Both));
    }
    for thread in threads {
        drop(thread.join());
    }
}

fn converse(shared: &BusState, stream: &UnixStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    if shared.silence == SilentAt::Connection {
        return io::copy(&mut reader, &mut io::sink()).map(drop);
    }
    admit(&mut reader, stream)?;
    loop {
        let message = read_message(&mut reader)?;
        if shared.silence == SilentAt::Service && message.member_is(b"Hello") {
            let mut stream = stream;
            stream.write_all(&message.welcome())?;
        }
        shared.messages.fetch_add(1, Ordering::SeqCst);
    }
}

/// The handshake: the user who runs this test is accepted.
fn admit(reader: &mut impl BufRead, mut stream: &UnixStream) -> io::Result<()> {
    let mut nul = [0];
    reader.read_exact(&mut nul)?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut words = line.split_whitespace();
        let answer = match (words.next(), words.next(), words.next()) {
            (Some("AUTH"), Some("EXTERNAL"), Some(_)) | (Some("DATA"), ..) => {
                "OK 0123456789abcdef0123456789abcdef"
            }
            (Some("AUTH"), Some("EXTERNAL"), None) => "DATA",
            (Some("AUTH"), ..) => "REJECTED EXTERNAL",
            (Some("NEGOTIATE_UNIX_FD"), ..) => "AGREE_UNIX_FD",
            (Some("BEGIN"), ..) => return Ok(()),
            _ => "ERROR",
        };
        stream.write_all(format!("{answer}\r\n").as_bytes())?;
    }
}

/// What of a message matters here.
struct BusMessage {
    serial: u32,
    fields: Vec<u8>,
}

impl BusMessage {
    /// Whether it calls this member.
    fn member_is(&self, name: &[u8]) -> bool {
        let mut windows = self.fields.windows(name.len() + 1);
        windows.any(|window| window.starts_with(name) && window.ends_with(&[0]))
    }

    /// The answer to `Hello`: the client's name on the bus.
    fn welcome(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        // Which request this answers.
        fields.extend_from_slice(&[5, 1, b'u', 0]);
        fields.extend_from_slice(&self.serial.to_le_bytes());
        // The client's name on the bus.
        fields.extend_from_slice(&[6, 1, b's', 0]);
        push_text(&mut fields, ":1.1");
        pad(&mut fields, 8);
        // The sender.
        fields.extend_from_slice(&[7, 1, b's', 0]);
        push_text(&mut fields, "org.freedesktop.DBus");
        pad(&mut fields, 8);
        // That the body is a text.
        fields.extend_from_slice(&[8, 1, b'g', 0, 1, b's', 0]);
        let mut body = Vec::new();
        push_text(&mut body, ":1.1");
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
        // Little endian, a method's return, that no answer is expected, version 1.
        let mut message = vec![b'l', 2, 1, 1];
        message.extend_from_slice(&length(&body));
        message.extend_from_slice(&1_u32.to_le_bytes());
        message.extend_from_slice(&length(&fields));
        message.extend_from_slice(&fields);
        pad(&mut message, 8);
        message.extend_from_slice(&body);
        message
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

fn pad(out: &mut Vec<u8>, to: usize) {
    out.resize(out.len().next_multiple_of(to), 0);
}

fn read_message(reader: &mut impl Read) -> io::Result<BusMessage> {
    let mut head = [0; 16];
    reader.read_exact(&mut head)?;
    let number = |at: usize| {
        let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
        if head[0] == b'l' {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        }
    };
    let length = |at: usize| usize::try_from(number(at)).map_err(io::Error::other);
    let (body, fields) = (length(4)?, length(12)?);
    // More than any greeting or question about a secret.
    if body > 1 << 20 || fields > 1 << 20 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut rest = vec![0; fields.next_multiple_of(8) + body];
    reader.read_exact(&mut rest)?;
    rest.truncate(fields);
    Ok(BusMessage {
        serial: number(8),
        fields: rest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eventually_blocking;

    fn connect(bus: &SilentBus) -> UnixStream {
        let path = bus.address().trim_start_matches("unix:path=");
        UnixStream::connect(path).unwrap()
    }

    /// Whether nothing has come so far. The bus would have answered what it counted already.
    fn is_silent(stream: &UnixStream) -> bool {
        stream.set_nonblocking(true).unwrap();
        let mut byte = [0];
        let mut reader = stream;
        matches!(reader.read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    fn enter(stream: &UnixStream) {
        let mut writer = stream;
        writer
            .write_all(b"\0AUTH\r\nAUTH EXTERNAL 30\r\nNEGOTIATE_UNIX_FD\r\n")
            .unwrap();
        let mut reader = BufReader::with_capacity(1, stream);
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            line
        };
        assert_eq!(line(), "REJECTED EXTERNAL\r\n");
        assert!(line().starts_with("OK "));
        assert_eq!(line(), "AGREE_UNIX_FD\r\n");
        writer.write_all(b"BEGIN\r\n").unwrap();
    }

    /// A call of this member, serial 7, without a body.
    fn message(member: &str) -> Vec<u8> {
        let mut fields = vec![3, 1, b's', 0];
        push_text(&mut fields, member);
        let mut message = vec![b'l', 1, 0, 1, 0, 0, 0, 0, 7, 0, 0, 0];
        message.extend_from_slice(&u32::try_from(fields.len()).unwrap().to_le_bytes());
        message.extend_from_slice(&fields);
        pad(&mut message, 8);
        message
    }

    fn heard(bus: &SilentBus, count: usize) {
        eventually_blocking(|| match bus.messages() {
            messages if messages == count => Ok(()),
            messages => Err(format!("{messages} messages")),
        });
    }

    #[test]
    fn a_service_greets_and_then_says_nothing() {
        let bus = SilentBus::start(SilentAt::Service);
        let mut stream = connect(&bus);
        enter(&stream);
        stream.write_all(&message("Hello")).unwrap();
        let mut head = [0; 16];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(head[..4], [b'l', 2, 1, 1]);
        let fields = usize::from(head[12]);
        let mut rest = vec![0; fields.next_multiple_of(8) + usize::from(head[4])];
        stream.read_exact(&mut rest).unwrap();
        assert_eq!(rest[..8], [5, 1, b'u', 0, 7, 0, 0, 0]);
        assert!(rest.ends_with(b":1.1\0"));
        stream.write_all(&message("OpenSession")).unwrap();
        heard(&bus, 2);
        assert!(is_silent(&stream));
    }

    #[test]
    fn a_bus_lets_in_and_then_says_nothing() {
        let bus = SilentBus::start(SilentAt::Bus);
        let mut stream = connect(&bus);
        enter(&stream);
        stream.write_all(&message("Hello")).unwrap();
        heard(&bus, 1);
        assert!(is_silent(&stream));
    }

    #[test]
    fn a_connection_says_nothing_at_all_and_ends_with_the_bus() {
        let bus = SilentBus::start(SilentAt::Connection);
        let mut stream = connect(&bus);
        stream.write_all(b"\0AUTH EXTERNAL 30\r\n").unwrap();
        eventually_blocking(|| match bus.connections() {
            1 => Ok(()),
            count => Err(format!("{count} connections")),
        });
        assert!(is_silent(&stream));
        drop(bus);
        stream.set_nonblocking(false).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "it has ended");
    }
}
