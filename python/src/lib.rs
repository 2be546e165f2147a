//! vecaz for Python: the compiled half of the package `vecaz`, whose other half is `python/package/vecaz`.
//!
//! Every class here is thin: it checks what came from Python, releases the interpreter's lock for all but short work, and calls the library. Objects are used by
//! one thread at a time and by the process that made them; anything else is an exception.

mod buffer;
mod detach;
mod dict;
mod engine;
mod envs;
mod errors;
mod games;
mod interrupt;
mod network;
mod numpy_input;
mod options;
mod python_network;
mod resource;
mod search;
mod threads;
mod training;
mod trees;

use pyo3::prelude::*;
use pyo3::types::PyDict;

#[pymodule]
fn _vecaz(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<envs::PyEnvs>()?;
    module.add_class::<engine::PyEngine>()?;
    module.add_class::<network::PyNetwork>()?;
    module.add_function(wrap_pyfunction!(games::games, module)?)?;
    module.add_function(wrap_pyfunction!(training::train, module)?)?;
    let at_exit = wrap_pyfunction!(detach::at_exit, module)?;
    module.py().import("atexit")?.call_method1("register", (at_exit,))?;
    // Only where there are forks.
    if let Ok(register) = module.py().import("os")?.getattr("register_at_fork") {
        let keywords = PyDict::new(module.py());
        keywords.set_item("after_in_child", wrap_pyfunction!(resource::forked, module)?)?;
        register.call((), Some(&keywords))?;
    }
    Ok(())
}
