//! Lines of JSON for every game, with the fields of KataGo's analysis engine.

mod field; // the defect of a field, and players by name
mod moves; // stones and moves of a query
mod restrictions; // moves that are allowed or avoided
mod query; // what a client asks for
mod reply; // what it is reported
mod server; // the queries in their order

pub use server::Json;
