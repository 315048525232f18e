//! Lists: all of their pages, what is wrong with them, and where they end.

use toolway_types::BytePool;
use toolway_wire::view;

use super::*;
use crate::listing::FetchedList;

async fn list(session: &Session) -> FetchedList<view::Tool> {
    list_from(session, &BytePool::new(list::ALL_LISTS)).await
}

async fn list_from(session: &Session, all_lists: &BytePool) -> FetchedList<view::Tool> {
    list::fetch(session, "tools/list", &view::TOOLS, LIMIT, all_lists)
        .await
        .expect("a list")
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

#[tokio::test(start_paused = true)]
async fn every_page_is_read_and_one_malformed_tool_costs_only_itself() {
    let (session, _pump, mut peer) = legacy().await;
    let script = async {
        let first = peer.expect("tools/list").await;
        assert_eq!(first.body["params"], json!({}));
        let mut tools: Vec<Value> = (0..300).map(|number| tool(&format!("t{number}"))).collect();
        tools[150] = json!({ "name": "broken", "inputSchema": 7 });
        peer.answer(&first, json!({ "tools": tools, "nextCursor": "" }))
            .await;
        let second = peer.expect("tools/list").await;
        assert_eq!(
            second.body["params"],
            json!({ "cursor": "" }),
            "empty is a cursor too"
        );
        peer.answer(&second, json!({ "tools": [tool("last")] }))
            .await;
    };
    let (listing, ()) = tokio::join!(list(&session), script);
    assert_eq!(listing.items.len(), 300);
    assert_eq!(
        listing.items.last().map(|tool| tool.name.as_str()),
        Some("last")
    );
    assert_eq!(listing.warnings.len(), 1);
    assert!(
        listing.warnings[0].contains("`broken`"),
        "{:?}",
        listing.warnings
    );
}

#[tokio::test(start_paused = true)]
async fn a_repeated_cursor_and_endless_pages_stop() {
    let (session, _pump, mut peer) = legacy().await;
    let script = async {
        for _ in 0..2 {
            let request = peer.expect("tools/list").await;
            peer.answer(
                &request,
                json!({ "tools": [tool("t")], "nextCursor": "same" }),
            )
            .await;
        }
    };
    let (listing, ()) = tokio::join!(list(&session), script);
    assert_eq!((listing.items.len(), listing.warnings.len()), (2, 1));

    let script = async {
        for page in 0..list::MAX_PAGES {
            let request = peer.expect("tools/list").await;
            let result = json!({ "tools": [tool("t")], "nextCursor": page.to_string() });
            peer.answer(&request, result).await;
        }
    };
    let (listing, ()) = tokio::join!(list(&session), script);
    assert_eq!(
        (listing.items.len(), listing.warnings.len()),
        (list::MAX_PAGES, 1)
    );
}

/// A page of this many tools whose descriptions make each item as large as this.
fn heavy(count: usize, bytes: usize, cursor: Option<&str>) -> Value {
    let bare = json!({ "name": "t", "inputSchema": {}, "description": "" });
    let text = "x".repeat(bytes - bare.to_string().len());
    let tool = json!({ "name": "t", "inputSchema": {}, "description": text });
    let mut page = json!({ "tools": vec![tool; count] });
    if let Some(cursor) = cursor {
        page["nextCursor"] = json!(cursor);
    }
    page
}

/// What becomes of a list of these pages; those that are not asked for are an error.
async fn list_of(pages: Vec<Value>, all_lists: &BytePool) -> FetchedList<view::Tool> {
    let (session, _pump, mut peer) = legacy().await;
    let script = async {
        for page in pages {
            let request = peer.expect("tools/list").await;
            peer.answer(&request, page).await;
        }
    };
    tokio::join!(list_from(&session, all_lists), script).0
}

#[tokio::test(start_paused = true)]
async fn sec_51_a_list_may_have_all_of_its_bytes_and_not_one_more() {
    const MIB: usize = 1 << 20;
    let all_lists = BytePool::new(list::ALL_LISTS);
    let at_cap = vec![heavy(8, MIB, Some("")), heavy(8, MIB, None)];
    let listing = list_of(at_cap, &all_lists).await;
    assert_eq!((listing.items.len(), listing.warnings.len()), (16, 0));

    let beyond = vec![heavy(8, MIB, Some("")), {
        let mut page = heavy(8, MIB, Some("never asked for"));
        page["tools"].as_array_mut().expect("tools").push(tool("t"));
        page
    }];
    let listing = list_of(beyond, &all_lists).await;
    assert_eq!(listing.items.len(), 16);
    assert_eq!(
        listing.warnings,
        [
            "`tools/list`: the list has more than 16 MiB; what follows the first 16 items is left out"
        ]
    );
    // Cursors count too: each is remembered.
    let cursors = ["a", "b", "c"].map(|c| heavy(1, 100, Some(&c.repeat(7 * MIB))));
    let listing = list_of(cursors.to_vec(), &all_lists).await;
    assert_eq!((listing.items.len(), listing.warnings.len()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn sec_51_a_list_may_have_so_many_items_and_not_one_more() {
    let all_lists = BytePool::new(list::ALL_LISTS);
    let most = view::LIST.items;
    let listing = list_of(vec![heavy(most, 100, None)], &all_lists).await;
    assert_eq!((listing.items.len(), listing.warnings.len()), (most, 0));
    let listing = list_of(vec![heavy(most + 1, 100, None)], &all_lists).await;
    assert_eq!(listing.items.len(), most);
    assert_eq!(
        listing.warnings,
        [
            "`tools/list`: the list has more than 10000 items; what follows the first 10000 items \
             is left out"
        ]
    );
    // What cannot be used counts as well, and is told of by its number.
    let listing = list_of(vec![json!({ "tools": vec![7; most + 1] })], &all_lists).await;
    assert_eq!((listing.items.len(), listing.warnings.len()), (0, 102));
    let number = "`tools/list`: 9900 more items of a page left out";
    assert_eq!(listing.warnings[100], number);
}

#[tokio::test(start_paused = true)]
async fn sec_51_one_item_that_is_too_large_costs_only_itself() {
    let all_lists = BytePool::new(list::ALL_LISTS);
    let mut page = heavy(1, view::MAX_ITEM + 1, None);
    page["tools"].as_array_mut().expect("tools").push(tool("t"));
    let listing = list_of(vec![page], &all_lists).await;
    assert_eq!(listing.items.len(), 1);
    assert_eq!(
        listing.warnings,
        ["`tools/list`: item 1 left out: it is larger than 4194304 bytes"]
    );
}

#[tokio::test(start_paused = true)]
async fn sec_51_all_lists_share_a_total_and_give_back_what_they_had_of_it() {
    const MIB: usize = 1 << 20;
    let all_lists = BytePool::new(4 * MIB);
    let large = || vec![heavy(1, MIB, Some("")), heavy(1, MIB, None)];
    let one = list_of(large(), &all_lists).await;
    let other = list_of(large(), &all_lists).await;
    for list in [&one, &other] {
        assert_eq!((list.items.len(), list.warnings.len()), (2, 0));
    }
    // What it would ask for next is never sent.
    let beyond = || vec![heavy(1, MIB, Some("never asked for"))];
    let third = list_of(beyond(), &all_lists).await;
    assert_eq!(
        (third.items.len(), third.warnings),
        (
            0,
            vec![
                "`tools/list`: the lists of all servers have more than 4 MiB; what follows the \
                 first 0 items is left out"
                    .to_owned()
            ]
        )
    );
    // A list of the usual size is never kept out by others.
    let usual = list_of(vec![heavy(500, 500, None)], &all_lists).await;
    assert_eq!((usual.items.len(), usual.warnings.len()), (500, 0));
    drop(one.clone());
    let third = list_of(beyond(), &all_lists).await;
    assert_eq!(third.items.len(), 0, "a copy is still there");
    drop(one);
    let again = list_of(large(), &all_lists).await;
    assert_eq!((again.items.len(), again.warnings.len()), (2, 0));
}
